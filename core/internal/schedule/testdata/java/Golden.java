import java.nio.file.Files;
import java.nio.file.Path;
import java.text.ParseException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Random;
import java.util.TimeZone;
import org.quartz.CronExpression;

/**
 * Prints what Quartz makes of an expression, one line each, fields separated by tabs:
 *
 *   expression, zone, start, then either "! message" or up to 20 fires, then "end" if there are no more.
 *
 * Arguments: the file of expressions chosen by hand (expression | zone | start; zone and start may be left out),
 * then the number of expressions to make up. The seed is fixed.
 */
public final class Golden {
    private static final int FIRES = 20;
    private static final String[] ZONES = {"UTC", "Asia/Shanghai", "GMT+8:00", "GMT-03:30"};
    private static final String[] MONTHS = {"JAN", "feb", "Mar", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
    private static final String[] DAYS = {"SUN", "mon", "Tue", "WED", "THU", "FRI", "SAT"};

    private final Random random = new Random(20261121);

    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String[] part = line.split("\\|");
            print(part[0].trim(), part.length > 1 ? part[1].trim() : "UTC",
                    part.length > 2 ? part[2].trim() : "2026-01-01T00:00:00Z");
        }
        Golden golden = new Golden();
        for (int i = Integer.parseInt(args[1]); i > 0; i--) {
            print(golden.expression(), golden.pick(ZONES), golden.start());
        }
        System.exit(0); // leaves behind what hangs
    }

    /** Quartz does not come back from some expressions. */
    private static void print(String expression, String zone, String start) throws InterruptedException {
        String[] line = new String[1];
        Thread thread = new Thread(() -> line[0] = fires(expression, zone, start));
        thread.setDaemon(true);
        thread.start();
        thread.join(3000);
        System.out.println(line[0] != null ? line[0] : String.join("\t", expression, zone, start, "! hangs"));
    }

    private static String fires(String expression, String zone, String start) {
        List<String> out = new ArrayList<>(List.of(expression, zone, start));
        try {
            CronExpression cron = new CronExpression(expression);
            cron.setTimeZone(TimeZone.getTimeZone(zone));
            Date at = Date.from(Instant.parse(start));
            for (int i = 0; i < FIRES && at != null; i++) {
                at = cron.getNextValidTimeAfter(at);
                out.add(at == null ? "end" : at.toInstant().toString());
            }
        } catch (ParseException | RuntimeException e) {
            out.add("! " + String.valueOf(e.getMessage()).replaceAll("\\s+", " "));
        }
        return String.join("\t", out);
    }

    private String start() {
        return Instant.ofEpochSecond(1_600_000_000L + random.nextInt(400_000_000)).toString();
    }

    /** Seldom invalid on purpose; sets and ranges are. */
    private String expression() {
        boolean byWeek = random.nextInt(3) == 0;
        String text = plain(0, 59, null) + " " + plain(0, 59, null) + " " + plain(0, 23, null)
                + " " + (byWeek ? "?" : monthDay()) + " " + plain(1, 12, MONTHS) + " " + (byWeek ? weekDay() : "?");
        return random.nextInt(5) == 0 ? text + " " + years() : text;
    }

    private String monthDay() {
        switch (random.nextInt(8)) {
            case 0: return "L";
            case 1: return "L-" + random.nextInt(28);
            case 2: return "LW";
            case 3: return (1 + random.nextInt(28)) + "W";
            default: return plain(1, 31, null);
        }
    }

    private String weekDay() {
        switch (random.nextInt(6)) {
            case 0: return name(1, 7, DAYS) + "L";
            case 1: return name(1, 7, DAYS) + "#" + (1 + random.nextInt(5));
            default: return plain(1, 7, DAYS);
        }
    }

    private String years() {
        int from = 2020 + random.nextInt(20);
        switch (random.nextInt(4)) {
            case 0: return "" + from;
            case 1: return from + "-" + (from + random.nextInt(30));
            case 2: return from + "/" + (1 + random.nextInt(9));
            default: return "*/" + (1 + random.nextInt(9));
        }
    }

    private String plain(int min, int max, String[] names) {
        int step = 1 + random.nextInt(max - min);
        switch (random.nextInt(8)) {
            case 0: return "*";
            case 1: return "*/" + step;
            case 2: return number(min, max) + "/" + step;
            case 3: return number(min, max) + "-" + number(min, max) + "/" + step;
            case 4: return names == null ? number(min, max) + "-" + number(min, max)
                    : pick(names) + "-" + pick(names);
            case 5: return name(min, max, names) + "," + number(min, max) + "-" + number(min, max) + "," + name(min, max, names);
            default: return name(min, max, names);
        }
    }

    private String name(int min, int max, String[] names) {
        return names == null || random.nextBoolean() ? number(min, max) : pick(names);
    }

    private String number(int min, int max) {
        return String.valueOf(min + random.nextInt(max - min + 1));
    }

    private String pick(String[] from) {
        return from[random.nextInt(from.length)];
    }
}
