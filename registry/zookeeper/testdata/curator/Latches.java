import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator's LeaderLatches, driven by lines on standard input.
 *
 * <p>Each line is a command, and each has one line for an answer: "ok" and what was asked for, or
 * "error" and why. A line that begins with "event" tells what became of a latch meanwhile. The
 * process ends with its input, and its session then ends by expiry alone, as at "halt".
 *
 * <pre>
 * latch NAME PATH ID    starts a latch                     event NAME leads | event NAME follows
 * close NAME            closes it, which deletes its node
 * has NAME              whether it leads
 * node NAME             the path of its node, or null
 * participants NAME     ids in order, the leader's with a *
 * leader NAME           the leader's id
 * count NAME PATH NODE TIMES   as ElasticJob does: a latch, await, NODE := NODE + 1, close; TIMES times   event NAME counted
 * session               its number in hexadecimal digits
 * halt                  ends the process as a crash does
 * </pre>
 */
public final class Latches {
    private static final PrintStream OUT = System.out;

    private final CuratorFramework client;
    private final Map<String, LeaderLatch> latches = new ConcurrentHashMap<>();

    private Latches(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(args[0])
                .sessionTimeoutMs(Integer.parseInt(args[1]))
                .connectionTimeoutMs(10_000)
                .retryPolicy(new RetryOneTime(100))
                .build();
        client.start();
        client.blockUntilConnected();
        Latches latches = new Latches(client);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok " + latches.execute(line.split(" "));
            } catch (Exception e) {
                answer = "error " + e;
            }
            say(answer);
        }
        Runtime.getRuntime().halt(0);
    }

    private static synchronized void say(String line) {
        OUT.println(line);
        OUT.flush();
    }

    private String execute(String[] words) throws Exception {
        switch (words[0]) {
            case "latch":
                start(words[1], words[2], words.length > 3 ? words[3] : "");
                return "";
            case "close":
                latches.remove(words[1]).close();
                return "";
            case "has":
                return String.valueOf(latches.get(words[1]).hasLeadership());
            case "node":
                return String.valueOf(latches.get(words[1]).getOurPath());
            case "participants":
                return latches.get(words[1]).getParticipants().stream()
                        .map(Latches::show)
                        .collect(Collectors.joining(" "));
            case "leader":
                return show(latches.get(words[1]).getLeader());
            case "count":
                count(words[1], words[2], words[3], Integer.parseInt(words[4]));
                return "";
            case "session":
                return Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId());
            case "halt":
                Runtime.getRuntime().halt(1);
                return "";
            default:
                throw new IllegalArgumentException("no command " + words[0]);
        }
    }

    private static String show(Participant p) {
        return p.getId() + (p.isLeader() ? "*" : "");
    }

    private void start(String name, String path, String id) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, path, id);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                say("event " + name + " leads");
            }

            @Override
            public void notLeader() {
                say("event " + name + " follows");
            }
        });
        latches.put(name, latch);
        latch.start();
    }

    /** What is not atomic about the count shows whether two ever hold the latch at once. */
    private void count(String name, String path, String node, int times) {
        Thread thread = new Thread(() -> {
            try {
                for (int i = 0; i < times; i++) {
                    try (LeaderLatch latch = new LeaderLatch(client, path)) {
                        latch.start();
                        latch.await();
                        int n = Integer.parseInt(new String(client.getData().forPath(node), StandardCharsets.UTF_8));
                        client.setData().forPath(node, String.valueOf(n + 1).getBytes(StandardCharsets.UTF_8));
                    }
                }
                say("event " + name + " counted");
            } catch (Exception e) {
                say("event " + name + " failed: " + e);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
