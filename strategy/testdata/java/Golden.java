import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;

import org.apache.shardingsphere.elasticjob.infra.handler.sharding.JobInstance;
import org.apache.shardingsphere.elasticjob.infra.handler.sharding.JobShardingStrategy;
import org.apache.shardingsphere.elasticjob.infra.handler.sharding.JobShardingStrategyFactory;

/**
 * Asks a JVM, and ElasticJob's own classes, what the Go strategies have to answer.
 * Writes golden.hash.jsonl, golden.order.jsonl and golden.assign.jsonl into the folder it is given.
 */
public class Golden {
    private static final Map<String, String> TYPES = new LinkedHashMap<>();

    static {
        String old = "com.dangdang.ddframe.job.lite.api.strategy.impl.";
        TYPES.put("AVG_ALLOCATION", old + "AverageAllocationJobShardingStrategy");
        TYPES.put("ODEVITY", old + "OdevitySortByNameJobShardingStrategy");
        TYPES.put("ROUND_ROBIN", old + "RotateServerByNameJobShardingStrategy");
    }

    private static final List<String> JOBS = Arrays.asList(
        "", "a", "b", "job", "orders", "orderSettlement", "com.acme.jobs.DailyReport",
        "polygenelubricants", // hash is Integer.MIN_VALUE
        "\u8ba2\u5355\u7ed3\u7b97", "\u6bcf\u65e5\u62a5\u8868\u4efb\u52a1", "\u5e93\u5b58-sync",
        "\ud83d\ude00", "nightly \ud83d\ude80\ud83d\ude80 launch", "\uff5e\ud840\udc0b",
        "a rather long name whose hash wraps around many times over");

    private static final List<List<String>> INSTANCES = Arrays.asList(
        Arrays.asList("10.0.0.9@-@12"),
        Arrays.asList("10.0.0.9@-@12", "10.0.0.10@-@3"),
        Arrays.asList("10.0.0.1@-@99", "10.0.0.1@-@100", "10.0.0.1@-@1"),
        Arrays.asList("10.0.0.9@-@worker-a1", "10.0.0.10@-@worker-a1", "10.0.0.9@-@worker", "10.0.0.9@-@worker-B1"),
        Arrays.asList("10.0.0.1@-@x\ud83d\ude00", "10.0.0.1@-@x\uff61", "10.0.0.1@-@x\ue000", "10.0.0.1@-@x\ud7ff", "10.0.0.1@-@x"),
        Arrays.asList("192.168.1.2@-@7", "192.168.1.10@-@7", "192.168.1.1@-@7", "10.1.1.1@-@7", "172.16.0.1@-@7", "9.9.9.9@-@7"),
        Arrays.asList("10.0.0.1@-@1", "10.0.0.2@-@1", "10.0.0.3@-@1", "10.0.0.4@-@1", "10.0.0.5@-@1", "10.0.0.10@-@1", "10.0.0.20@-@1"));

    public static void main(final String[] args) throws Exception {
        Path dir = Path.of(args[0]);
        Random random = new Random(20260101L);
        try (PrintStream out = open(dir, "golden.hash.jsonl")) {
            for (String each : JOBS) {
                hash(out, each);
            }
            for (int i = 0; i < 1500; i++) {
                hash(out, text(random, random.nextInt(40)));
            }
        }
        try (PrintStream out = open(dir, "golden.order.jsonl")) {
            for (List<String> each : INSTANCES) {
                order(out, each);
            }
            for (int i = 0; i < 150; i++) {
                String stem = text(random, random.nextInt(3));
                List<String> list = new ArrayList<>();
                for (int k = random.nextInt(8); k >= 0; k--) {
                    list.add(stem + text(random, random.nextInt(4)));
                }
                order(out, list.stream().distinct().collect(Collectors.toList()));
            }
        }
        try (PrintStream out = open(dir, "golden.assign.jsonl")) {
            for (String type : TYPES.keySet()) {
                for (String job : JOBS) {
                    for (List<String> each : INSTANCES) {
                        assign(out, type, job, each);
                    }
                }
            }
        }
    }

    private static void hash(final PrintStream out, final String text) {
        out.printf("{\"text\":%s,\"hash\":%d}%n", quote(text), text.hashCode());
    }

    /** The order in which the registry centre hands the children of a node to a strategy. */
    private static List<String> descending(final List<String> ids) {
        List<String> result = new ArrayList<>(ids);
        result.sort(Comparator.reverseOrder());
        return result;
    }

    private static void order(final PrintStream out, final List<String> ids) {
        out.printf("{\"in\":%s,\"out\":%s}%n", quote(ids), quote(descending(ids)));
    }

    private static void assign(final PrintStream out, final String type, final String job, final List<String> ids) throws Exception {
        List<String> answers = new ArrayList<>();
        for (int total = 1; total <= 26; total++) {
            answers.add(answer(type, job, ids, total <= 25 ? total : 100));
        }
        out.printf("{\"strategy\":%s,\"job\":%s,\"instances\":%s,\"owners\":%s}%n", quote(type), quote(job), quote(ids), quote(answers));
    }

    /** One letter for each item, a = the first of ids as given; or the name of what was thrown. */
    private static String answer(final String type, final String job, final List<String> ids, final int total) throws Exception {
        String result;
        try {
            result = letters(current(type, job, ids, total), ids, total);
        } catch (RuntimeException e) {
            result = "!" + e.getClass().getName();
        }
        String former;
        try {
            former = letters(former(type, job, ids, total), ids, total);
        } catch (RuntimeException e) {
            former = "!" + e.getClass().getName();
        }
        if (!result.equals(former)) {
            throw new IllegalStateException("2.1.5 and 3.0.4 differ: " + type + " " + job + " " + ids + " " + total);
        }
        return result;
    }

    private static Map<String, List<Integer>> current(final String type, final String job, final List<String> ids, final int total) {
        JobShardingStrategy strategy = JobShardingStrategyFactory.getStrategy(type);
        List<JobInstance> instances = new ArrayList<>();
        for (String each : descending(ids)) {
            instances.add(new JobInstance(each, "", ""));
        }
        Map<String, List<Integer>> result = new LinkedHashMap<>();
        strategy.sharding(instances, job, total).forEach((key, value) -> result.put(key.getJobInstanceId(), value));
        return result;
    }

    private static Map<String, List<Integer>> former(final String type, final String job, final List<String> ids, final int total) {
        com.dangdang.ddframe.job.lite.api.strategy.JobShardingStrategy strategy =
            com.dangdang.ddframe.job.lite.api.strategy.JobShardingStrategyFactory.getStrategy(TYPES.get(type));
        List<com.dangdang.ddframe.job.lite.api.strategy.JobInstance> instances = new ArrayList<>();
        for (String each : descending(ids)) {
            instances.add(new com.dangdang.ddframe.job.lite.api.strategy.JobInstance(each));
        }
        Map<String, List<Integer>> result = new LinkedHashMap<>();
        strategy.sharding(instances, job, total).forEach((key, value) -> result.put(key.getJobInstanceId(), value));
        return result;
    }

    private static String letters(final Map<String, List<Integer>> assignment, final List<String> ids, final int total) {
        char[] result = new char[total];
        Arrays.fill(result, '?');
        assignment.forEach((id, items) -> items.forEach(item -> result[item] = (char) ('a' + ids.indexOf(id))));
        return new String(result);
    }

    /** Random text of valid code points; the odds favour the places where UTF-16 and UTF-8 order differ. */
    private static String text(final Random random, final int length) {
        StringBuilder result = new StringBuilder();
        for (int i = 0; i < length; i++) {
            switch (random.nextInt(5)) {
                case 0:
                    result.appendCodePoint(0x20 + random.nextInt(0x5f));
                    break;
                case 1:
                    result.appendCodePoint(0x4e00 + random.nextInt(0x5000));
                    break;
                case 2:
                    result.appendCodePoint(0xe000 + random.nextInt(0x1ffe));
                    break;
                case 3:
                    result.appendCodePoint(0x10000 + random.nextInt(0x100000));
                    break;
                default:
                    result.appendCodePoint(random.nextInt(0xd800));
            }
        }
        return result.toString();
    }

    private static PrintStream open(final Path dir, final String name) throws Exception {
        return new PrintStream(Files.newOutputStream(dir.resolve(name)), false, StandardCharsets.US_ASCII);
    }

    private static String quote(final List<String> texts) {
        return texts.stream().map(Golden::quote).collect(Collectors.joining(",", "[", "]"));
    }

    private static String quote(final String text) {
        StringBuilder result = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
                result.append(c);
            } else {
                result.append(String.format("\\u%04x", (int) c));
            }
        }
        return result.append('"').toString();
    }
}
