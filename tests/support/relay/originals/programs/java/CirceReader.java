import io.circe.Decoder;
import io.circe.Decoder$;
import io.circe.HCursor;
import io.circe.Json;
import io.circe.KeyDecoder;
import io.circe.KeyDecoder$;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.TreeMap;
import scala.Option;
import scala.util.Either;

/** Reads values, a line of base64 each, as sky-uk's decoder does: circe's decoders, then java.util.Base64. */
public final class CirceReader {
    @SuppressWarnings("unchecked")
    private static <T> T right(Either<?, ?> either) {
        if (either.isLeft()) {
            throw new IllegalArgumentException("refused");
        }
        return (T) either.toOption().get();
    }

    private static byte[] base64(String text) {
        return Base64.getDecoder().decode(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static String read(byte[] value) {
        Json json = right(io.circe.parser.package$.MODULE$.parse(new String(value, StandardCharsets.UTF_8)));
        HCursor cursor = json.hcursor();
        Decoder<String> text = Decoder$.MODULE$.decodeString();
        Object time = right(cursor.get("time", Decoder$.MODULE$.decodeLong()));
        String topic = right(cursor.get("topic", text));
        String key = right(cursor.get("key", text));
        Option<String> content = right(cursor.get("value", Decoder$.MODULE$.decodeOption(text)));
        Decoder map = Decoder$.MODULE$.decodeMap(KeyDecoder$.MODULE$.decodeKeyString(), text);
        Option<scala.collection.immutable.Map<String, String>> headers =
                right(cursor.get("headers", Decoder$.MODULE$.decodeOption(map)));
        TreeMap<String, String> read = new TreeMap<>();
        if (headers.isDefined()) {
            scala.collection.Iterator<scala.Tuple2<String, String>> each = headers.get().iterator();
            while (each.hasNext()) {
                scala.Tuple2<String, String> header = each.next();
                read.put(header._1(), hex(base64(header._2())));
            }
        }
        String body = content.isDefined() ? hex(base64(content.get())) : "null";
        StringBuilder all = new StringBuilder();
        read.forEach((name, one) -> all.append(' ').append(hex(name.getBytes(StandardCharsets.UTF_8))).append('=').append(one));
        return time + " " + hex(topic.getBytes(StandardCharsets.UTF_8)) + " " + hex(base64(key)) + " " + body + all;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String verdict;
            try {
                verdict = read(Base64.getDecoder().decode(line));
            } catch (IllegalArgumentException refused) {
                verdict = "-";
            } catch (Throwable refused) {
                verdict = "- " + refused;
            }
            System.out.println(verdict);
        }
    }
}
