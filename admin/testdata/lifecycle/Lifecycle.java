import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobAPIFactory;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobConfigurationAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobOperateAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobStatisticsAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.ServerStatisticsAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.ShardingOperateAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.ShardingStatisticsAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.domain.JobBriefInfo;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.domain.ServerBriefInfo;

/** Makes the calls of ElasticJob's lifecycle API that its input names, a line each, and answers with a line. */
public final class Lifecycle {

    private final JobConfigurationAPI configuration;
    private final JobOperateAPI operate;
    private final ShardingOperateAPI items;
    private final JobStatisticsAPI jobs;
    private final ServerStatisticsAPI servers;
    private final ShardingStatisticsAPI sharding;

    private Lifecycle(final String connect, final String namespace) {
        configuration = JobAPIFactory.createJobConfigurationAPI(connect, namespace, null);
        operate = JobAPIFactory.createJobOperateAPI(connect, namespace, null);
        items = JobAPIFactory.createShardingOperateAPI(connect, namespace, null);
        jobs = JobAPIFactory.createJobStatisticsAPI(connect, namespace, null);
        servers = JobAPIFactory.createServerStatisticsAPI(connect, namespace, null);
        sharding = JobAPIFactory.createShardingStatisticsAPI(connect, namespace, null);
    }

    public static void main(final String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Lifecycle api = new Lifecycle(args[0], args[1]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok " + api.call(line.split("\t", -1));
            } catch (final Exception ex) {
                answer = "failed " + ex;
            }
            answers.println(answer.replace("\n", "\\n"));
            answers.flush();
        }
        System.exit(0);
    }

    /** An empty argument is none. */
    private static String arg(final String[] words, final int at) {
        return words.length <= at || words[at].isEmpty() ? null : words[at];
    }

    private String call(final String[] words) throws Exception {
        String job = arg(words, 1);
        String ip = arg(words, 2);
        switch (words[0]) {
            case "getJobConfiguration":
                JobConfigurationPOJO c = configuration.getJobConfiguration(job);
                return c.getJobName() + " " + c.getCron() + " " + c.getShardingTotalCount() + " " + c.getJobParameter();
            case "updateJobConfiguration":
                JobConfigurationPOJO now = configuration.getJobConfiguration(job);
                now.setCron(words[2]);
                now.setShardingTotalCount(Integer.parseInt(words[3]));
                now.setJobParameter(words[4]);
                configuration.updateJobConfiguration(now);
                return "";
            case "removeJobConfiguration":
                configuration.removeJobConfiguration(job);
                return "";
            case "trigger":
                operate.trigger(job);
                return "";
            case "disable":
                operate.disable(job, ip);
                return "";
            case "enable":
                operate.enable(job, ip);
                return "";
            case "shutdown":
                operate.shutdown(job, ip);
                return "";
            case "remove":
                operate.remove(job, ip);
                return "";
            case "dump":
                return operate.dump(job, ip, Integer.parseInt(words[3]));
            case "disableItem":
                items.disable(job, words[2]);
                return "";
            case "enableItem":
                items.enable(job, words[2]);
                return "";
            case "getJobsTotalCount":
                return String.valueOf(jobs.getJobsTotalCount());
            case "getAllJobsBriefInfo":
                return briefs(jobs.getAllJobsBriefInfo());
            case "getJobBriefInfo":
                return brief(jobs.getJobBriefInfo(job));
            case "getJobsBriefInfo":
                return briefs(jobs.getJobsBriefInfo(words[1]));
            case "getServersTotalCount":
                return String.valueOf(servers.getServersTotalCount());
            case "getAllServersBriefInfo":
                return servers.getAllServersBriefInfo().stream().map(Lifecycle::server).sorted().collect(Collectors.joining("; "));
            case "getShardingInfo":
                return sharding.getShardingInfo(job).stream()
                        .map(s -> s.getItem() + " " + s.getServerIp() + " " + s.getInstanceId() + " " + s.getStatus())
                        .sorted().collect(Collectors.joining("; "));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String briefs(final Collection<JobBriefInfo> jobs) {
        return jobs.stream().map(Lifecycle::brief).sorted().collect(Collectors.joining("; "));
    }

    private static String brief(final JobBriefInfo j) {
        return j.getJobName() + " " + j.getStatus() + " " + j.getCron() + " instances=" + j.getInstanceCount() + " items=" + j.getShardingTotalCount();
    }

    private static String server(final ServerBriefInfo s) {
        return s.getServerIp() + " instances=" + s.getInstancesNum() + " jobs=" + new TreeSet<>(s.getJobNames()) + " disabled=" + s.getDisabledJobsNum();
    }
}
