// Tnd.java - reads TNet's dictionary dict.tnd, with nothing but the standard library.
//
//     java Tnd.java dict.tnd user 17         the vectors of sign 17 in share group "user"
//
// Bytes: docs/formats.md 6.6. The header's checksum is looked at, those of the rows are not. A file of
// up to 2 GB, which is what one MappedByteBuffer holds.
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;

public final class Tnd {
    private static final long MAGIC = 0x0a1a0a0d31444e54L;
    private final ByteBuffer b;
    private final int groups, groupsAt, namesAt;
    private final List<String> segments = new ArrayList<>();

    public Tnd(Path path) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            b = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()).order(ByteOrder.LITTLE_ENDIAN);
        }
        if (b.capacity() < 128 || b.getLong(0) != MAGIC || b.getShort(8) != 1 || b.getLong(48) != b.capacity()
                || b.getInt(124) != headerCrc()) {
            throw new IOException(path + ": no dictionary of version 1, or damaged");
        }
        if ((b.getInt(112) & 1) != 0) {
            throw new IOException(path + ": a delta, which needs the dictionary that it stands on");
        }
        groups = b.getInt(96);
        groupsAt = (int) b.getLong(64);
        namesAt = (int) b.getLong(72);
        // the only list of plain words in it; names are of letters, digits and "_.-"
        Matcher list = Pattern.compile("\"segments\":\\[([^\\]]*)\\]").matcher(text((int) b.getLong(80), b.getInt(104)));
        Matcher name = Pattern.compile("\"([^\"]*)\"").matcher(list.find() ? list.group(1) : "");
        while (name.find()) {
            segments.add(name.group(1));
        }
    }

    private int headerCrc() {
        CRC32C crc = new CRC32C();
        crc.update(b.slice(0, 124));
        return (int) crc.getValue();
    }

    private String text(int at, int size) {
        byte[] out = new byte[size];
        b.get(at, out);
        return new String(out, StandardCharsets.UTF_8);
    }

    /** The key of a row is mix(sign ^ salt of its group). */
    static long mix(long z) {
        z = (z ^ z >>> 30) * 0xbf58476d1ce4e5b9L;
        z = (z ^ z >>> 27) * 0x94d049bb133111ebL;
        return z ^ z >>> 31;
    }

    /** The segments of a sign, by name; null where there is no row. */
    public Map<String, float[]> find(String group, long sign) {
        for (int g = 0; g < groups; g++) {
            int head = groupsAt + 32 * g;
            if (!text(namesAt + b.getInt(head + 8), b.getShort(head + 12) & 0xffff).equals(group)) {
                continue;
            }
            long key = mix(sign ^ b.getLong(head));
            for (int i = 0; i < b.get(head + 14); i++) {
                int table = groupsAt + 32 * groups + 320 * (b.getShort(head + 16 + 2 * i) & 0xffff);
                Map<String, float[]> row = findIn(table, g, key);
                if (row != null) {
                    return row;
                }
            }
        }
        return null;
    }

    private Map<String, float[]> findIn(int table, int group, long key) {
        long base = b.getLong(table + 40);
        int shift = b.get(table + 56);
        long bucket = shift == 64 ? 0 : (key - base) >>> shift;
        if (Long.compareUnsigned(key, base) < 0 || Long.compareUnsigned(bucket, b.getInt(table + 48)) >= 0) {
            return null;
        }
        int start = (int) (b.getLong(table + 8) + 4 * bucket);
        int keyAt = (int) b.getLong(table + 16), rowsAt = (int) b.getLong(table + 24), groupAt = (int) b.getLong(table + 32);
        for (int i = b.getInt(start); i < b.getInt(start + 4); i++) {
            if (b.getLong(keyAt + 8 * i) == key && (groupAt == 0 || (b.getShort(groupAt + 2 * i) & 0xffff) == group)) {
                return row(table, rowsAt + i * b.getInt(table + 52));
            }
        }
        return null;
    }

    private Map<String, float[]> row(int table, int row) {
        Map<String, float[]> out = new LinkedHashMap<>();
        for (int i = 0; i < b.get(table + 57); i++) {
            int s = table + 64 + 16 * i;
            int scaleAt = b.getInt(s + 4);
            float scale = scaleAt == -1 ? 1 : b.getFloat(row + scaleAt);
            float[] w = new float[b.getShort(s + 8) & 0xffff];
            for (int k = 0; k < w.length; k++) {
                w[k] = value(row + b.getInt(s), b.get(s + 10), k, scale);
            }
            out.put(segments.get(b.get(s + 11)), w);
        }
        return out;
    }

    /** The k-th float of a segment: f32, bf16, fp16, int8, int4 or 1bit. */
    private float value(int at, int kind, int k, float scale) {
        return switch (kind) {
            case 0 -> b.getFloat(at + 4 * k);
            case 1 -> Float.intBitsToFloat(b.getShort(at + 2 * k) << 16);
            case 2 -> half(b.getShort(at + 2 * k) & 0xffff);
            case 3 -> b.get(at + k) * scale;
            case 4 -> ((b.get(at + k / 2) >> k % 2 * 4 & 15 ^ 8) - 8) * scale;
            case 5 -> (b.get(at + k / 8) >> k % 8 & 1) != 0 ? -scale : scale;
            default -> throw new IllegalStateException("values of a kind that this reader does not know");
        };
    }

    private static float half(int h) {
        int exponent = h >> 10 & 31, mantissa = h & 1023;
        float size = exponent == 0 ? Math.scalb((float) mantissa, -24) : Math.scalb(1024f + mantissa, exponent - 25);
        return h >> 15 != 0 ? -size : size;
    }

    public static void main(String[] words) throws IOException {
        if (words.length != 3) {
            System.err.println("usage: java Tnd.java dict.tnd GROUP SIGN");
            System.exit(2);
        }
        Map<String, float[]> row = new Tnd(Path.of(words[0])).find(words[1], Long.parseUnsignedLong(words[2]));
        if (row == null) {
            System.err.println("no row of sign " + words[2] + " in group " + words[1]);
            System.exit(1);
        }
        row.forEach((name, w) -> {
            StringBuilder line = new StringBuilder(name);
            for (float x : w) {
                line.append(' ').append(x);
            }
            System.out.println(line);
        });
    }
}
