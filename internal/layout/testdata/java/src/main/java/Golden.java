import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.shardingsphere.elasticjob.api.JobConfiguration;
import org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO;
import org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine;

/** Prints what ElasticJob writes and reads for awkward values, as JSON. */
public final class Golden {

    private static final String[] WORDS = {
        "", " ", "  ", "a", "a b", " a", "a ", "a  b", "~", "null", "Null", "NULL", "nul", "true", "True", "TRUE", "tRue", "false", "yes", "Yes",
        "y", "Y", "n", "no", "No", "NO", "on", "ON", "off", "Off", "=", "<<", "<", "<<<", "0", "1", "-1", "+1", "007", "08", "0_1", "0_", "0o7", "0x1F",
        "0x", "0b101", "1_000", "_1", "1:30", "1:60", "12:30:45", "1:30.5", "1.0", "1.", ".5", ".", "..", "-.5", "1e3", "1e+3", "1.5e3", "e3", ".inf", "-.inf",
        "+.INF", ".nan", ".NaN", "-.nan", "NaN", "2026-11-21", "2026-1-2", "2026-11-21T10:00:00Z", "2026-11-21 10:00:00", "2026-11-21 10:00:00.5 +8",
        "10.0.0.5", "10.0.0.5@-@4711", "123abc", "99999999999999999999", "-", "--", "---", "--- a", "...", "...a", "- a", "-a", "-\ta", "?", "? a", "?a",
        ":", ": a", ":a", "a:", "a: b", "a:b", "a :b", "http://h:80/p?a=b&c=d#e", "a #b", "a# b", "a#b", "#a", "&a", "*", "*a", "* * * * * ?", "0/5 * * * * ?",
        "0 0 12 ? * MON#2", "!a", "!!str a", "|", "|a", ">", ">a", "%a", "@a", "`a`", "{a: b}", "[a]", "a[0]", "a{b}", ",a", "a,b", "0=a,1=b", "'", "''",
        "'a'", "it's", "\"", "\"a\"", "say \"hi\"", "\\", "a\\b", "a\tb", "\ta", "a\t", "\t", "a\nb", "a\n", "a\n\n", "\na", "\n", "\n\n", "a\n b", " a\nb",
        "a \nb", "a\nb ", "a\n\nb", "a\n\n\nb\n", "a\rb", "a\r\nb", "a\n\tb", "a\nb: c\n# d", "---\na", "a\n---\nb", "\u00a0", "a\u00a0b", "\u00e9t\u00e9", "\u5317\u4eac",
        "\u5317\u4eac: x", "\ud83d\ude00", "a \ud83d\ude00\tb", "\u00ad", "\u200b", "\ufffd", "key=value", "$a", "^a", "(a)", "a;b", "a?", "a!", "a*", "a@b", "a%b", "a|b", "a>b", "a'b", "a\"b",
        "a ? b", "a - b", "a , b", "a & b", "trUe ", "0 ", "1 2", "SELECT * FROM t WHERE a = 'x' -- c", "{\"a\": [1, 2]}", "<<: *a", "=a", "a=",
    };

    private static final String ALPHABET = "ab01_.:-+#&*!|>'\"%@`{}[],?=~<\\/ \t\n\u00e9\u5317";

    private static final String[] SCALARS = {
        "", "~", "null", "a", "'a'", "\"a\\tb\"", "007", "'007'", "08", "0x1F", "0b11", "1_000", "1:30", "-5", "+5", "99999999999", "99999999999999999999999", "3.0", "1.50",
        "1e3", "1.5e3", "12345678.9", "0.00012", "1e-7", "1e400", "100.", ".5", "-.5", ".inf", "-.inf", ".nan", "1:30.5", "0.1", "1e21", "123456789012345680.0",
        "true", "True", "yes", "on", "No", "'true'", "y", "'3'", "\"3\"", "' 3'", "!!str 5", "!!int '5'", "!!float 5", "[1, a]", "{b: 1}", "2026", "a b  c", "|-\n    x\n    y", ">-\n    x\n    y",
        "=", "<<", "\"\"", "''", "'~'", "2147483647", "2147483648", "-2147483648",
    };

    public static void main(final String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        int count = args.length > 1 && "write".equals(args[0]) ? Integer.parseInt(args[1]) : 120;
        out.println("[");
        List<String> result = "read".equals(args[0]) ? read() : "ours".equals(args[0]) ? ours(args[1]) : write(count);
        out.print(String.join(",\n", result));
        out.println("\n]");
        out.flush();
    }

    private static List<String> write(final int count) {
        List<String> values = new ArrayList<>();
        Collections.addAll(values, WORDS);
        for (int length : new int[] {60, 75, 80, 100, 200}) {
            for (String word : new String[] {"a", "ab cd", "it's ", "a: b", "tab\t x ", "x  y z", "\u5317\u4eac \ud83d\ude00", "1 "}) {
                values.add(repeat(word, length));
                values.add("'" + repeat(word, length));
            }
        }
        Random random = new Random(20261121);
        for (int i = 0; i < count; i++) {
            values.add(text(random, 1 + random.nextInt(i % 5 == 0 ? 220 : 9)));
        }
        List<String> result = new ArrayList<>();
        for (String each : values) {
            result.add("{\"text\": " + quote(each) + ", \"yaml\": " + quote(marshal(each)) + "}");
        }
        return result;
    }

    private static String marshal(final String text) {
        JobConfigurationPOJO pojo = new JobConfigurationPOJO();
        pojo.setJobName("j");
        pojo.setShardingTotalCount(1);
        pojo.setDescription(text);
        pojo.setJobParameter("");
        pojo.setShardingItemParameters("");
        if (!text.isEmpty()) {
            pojo.setJobListenerTypes(Collections.singletonList(text));
            pojo.setJobExecutorServiceHandlerType(text);
            pojo.setTimeZone(text);
        }
        pojo.getProps().setProperty("p", text);
        String result = YamlEngine.marshal(pojo);
        if (text.isEmpty() || text.length() > 122 || text.contains("\n")) {
            return result;
        }
        pojo.getProps().clear();
        pojo.getProps().setProperty(text, "v");
        String second = YamlEngine.marshal(pojo);
        int at = second.indexOf("\nprops:\n") + 8;
        return result + "key:\n" + second.substring(at, second.indexOf("\nreconcile", at) + 1);
    }

    private static List<String> read() {
        List<String> result = new ArrayList<>();
        for (String each : SCALARS) {
            TreeMap<String, String> fields = new TreeMap<>();
            fields.put("jobParameter", load("jobParameter: " + each, "jobParameter"));
            fields.put("failover", load("failover: " + each, "failover"));
            fields.put("maxTimeDiffSeconds", load("maxTimeDiffSeconds: " + each, "maxTimeDiffSeconds"));
            fields.put("props", load("props:\n  p: " + each, "props"));
            StringBuilder line = new StringBuilder("{\"scalar\": " + quote(each));
            fields.forEach((key, value) -> line.append(", \"" + key + "\": " + (null == value ? "null" : quote(value))));
            result.add(line.append("}").toString());
        }
        return result;
    }

    /** What is read in the documents of a file: one a line, in base64. */
    private static List<String> ours(final String file) throws Exception {
        List<String> result = new ArrayList<>();
        for (String each : Files.readAllLines(Paths.get(file))) {
            String yaml = new String(Base64.getDecoder().decode(each), StandardCharsets.UTF_8);
            JobConfigurationPOJO pojo = YamlEngine.unmarshal(yaml, JobConfigurationPOJO.class);
            StringBuilder line = new StringBuilder("{\"yaml\": " + quote(yaml) + ", \"description\": " + quote(pojo.getDescription()));
            pojo.getProps().forEach((key, value) -> line.append("p".equals(key)
                    ? ", \"p\": " + quote(value.toString()) : ", \"own\": " + quote(key.equals(value) ? key.toString() : "another: " + key)));
            pojo.getJobListenerTypes().forEach(type -> line.append(", \"listener\": " + quote(type)));
            if (null != pojo.getTimeZone()) {
                line.append(", \"timeZone\": " + quote(pojo.getTimeZone()));
            }
            result.add(line.append("}").toString());
        }
        return result;
    }

    /** Null when it cannot be read. */
    private static String load(final String line, final String field) {
        try {
            JobConfigurationPOJO pojo = YamlEngine.unmarshal("jobName: j\nshardingTotalCount: 1\n" + line + "\n", JobConfigurationPOJO.class);
            JobConfiguration config = pojo.toJobConfiguration();
            switch (field) {
                case "jobParameter":
                    return config.getJobParameter();
                case "failover":
                    return String.valueOf(config.isFailover());
                case "maxTimeDiffSeconds":
                    return String.valueOf(config.getMaxTimeDiffSeconds());
                default:
                    return config.getProps().getProperty("p");
            }
        } catch (final RuntimeException ex) {
            return null;
        }
    }

    private static String text(final Random random, final int length) {
        StringBuilder result = new StringBuilder();
        for (int i = 0; i < length; i++) {
            result.append(random.nextInt(4) == 0 ? (length > 20 ? ' ' : 'x') : ALPHABET.charAt(random.nextInt(ALPHABET.length())));
        }
        return result.toString();
    }

    private static String repeat(final String word, final int length) {
        StringBuilder result = new StringBuilder();
        while (result.length() < length) {
            result.append(word);
        }
        return result.toString();
    }

    private static String quote(final String text) {
        StringBuilder result = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                result.append('\\').append(each);
            } else if (each == '\n') {
                result.append("\\n");
            } else if (each < 0x20 || each > 0x7e) {
                result.append(String.format("\\u%04x", (int) each));
            } else {
                result.append(each);
            }
        }
        return result.append('"').toString();
    }
}
