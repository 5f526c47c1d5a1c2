import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.infra.json.GsonFactory;

/**
 * Prints the sharding contexts that ElasticJob gives to a script, one a line, fields separated by tabs:
 *
 *   job, task id, total, job parameter, item, the item's parameter or nothing for none, and then the JSON.
 *
 * The texts before the JSON are written as JSON has them, without its quotes and in ASCII.
 */
public final class Contexts {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) {
        print("hello", "hello@-@2@-@READY@-@10.0.0.1@-@web-1-0-x", 3, "", 2, null);
        print("hello", "hello@-@2@-@READY@-@10.0.0.1@-@web-1-0-x", 3, "p", 2, "\u6df1\u5733 \"x\"");
        print("jobs of <shop> & 'co'", "a=b", 1, "SELECT 'a' WHERE x <> 1 AND y = \"z\" && 1 >= 0", 0, "it's");
        print("\u4f5c\u4e1a", "\u4f5c\u4e1a@-@0@-@READY@-@10.0.0.1@-@1", 100000, "C:\\tools\\new\r\n\tlast/line", 99999, "{\"a\":[1,2]}");
        for (int row = 0; row < 0x100; row += 0x10) { // ASCII and Latin 1, with the control characters of both
            StringBuilder text = new StringBuilder();
            for (char c = (char) row; c < row + 0x10; c++) {
                text.append(c);
            }
            print("chars", "t", 1, text.toString(), 0, null);
        }
        // what JSON in JavaScript trips over and its neighbours, beyond the basic plane, at the ends of Unicode
        for (String text : new String[] {"\u2027\u2028\u2029\u202a", "\ud83d\ude00\ud834\udd1e", "\ufeff\ufffd\uffff", "\udbff\udfff", "\u00e9\u0301\u200b\ue000"}) {
            print("chars", "t", 1, text, 0, text);
        }
    }

    private static void print(String job, String task, int total, String jobParameter, int item, String parameter) {
        ShardingContext context = new ShardingContext(job, task, total, jobParameter, item, parameter);
        OUT.println(String.join("\t", escaped(job), escaped(task), "" + total, escaped(jobParameter), "" + item,
                parameter == null ? "" : escaped(parameter), GsonFactory.getGson().toJson(context)));
    }

    private static String escaped(String text) {
        StringBuilder out = new StringBuilder();
        for (char c : text.toCharArray()) {
            out.append(c >= ' ' && c <= '~' && c != '"' && c != '\\' ? "" + c : String.format("\\u%04x", (int) c));
        }
        return out.toString();
    }
}
