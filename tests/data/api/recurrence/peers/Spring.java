import java.time.Instant;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Scanner;
import org.springframework.scheduling.support.CronExpression;

/** Prints what Spring's CronExpression answers to the questions on its standard input. */
public class Spring {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\t");
            CronExpression expression = CronExpression.parse("0 " + parts[1]);
            long first = Long.parseLong(parts[2]), last = Long.parseLong(parts[3]);
            ArrayList<String> found = new ArrayList<>();
            ZonedDateTime at = Instant.ofEpochSecond(first * 60 - 1).atZone(ZoneId.of(parts[0]));
            long before = first * 60 - 1;
            for (at = expression.next(at); at.toEpochSecond() < last * 60; at = expression.next(at)) {
                found.add(Long.toString(at.toEpochSecond() / 60 - first));
                if (at.toEpochSecond() <= before) {
                    found.add("again");
                    break;
                }
                before = at.toEpochSecond();
            }
            System.out.println(String.join(" ", found));
        }
    }
}
