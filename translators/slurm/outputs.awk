# Reads the bytes of DAGBRIDGE_OUTPUT as numbers, so that no locale and no awk sees characters in them.
# Exit 0: a JSON object. Exit 3: lines name=value; their JSON object is printed. Exit 4: nothing. Exit 1: none of these; why
# is printed.
BEGIN {
  split("34 34 92 92 47 47 98 8 102 12 110 10 114 13 116 9", pair, " ")
  for (i = 1; i in pair; i += 2) escape[pair[i]] = pair[i + 1]
}

{ for (i = 1; i <= NF; i++) byte[n++] = $i + 0 }

END {
  utf8()
  p = 0
  space()
  if (p == n) exit 4
  if (byte[p] == 123) object()
  else if (byte[p] == 91 || byte[p] == 34) refuse("they are no JSON object, nor lines name=value")
  else lines()
}

function refuse(why) { print why; exit 1 }

# space skips white space.
function space() { while (p < n && (byte[p] == 32 || byte[p] == 9 || byte[p] == 10 || byte[p] == 13)) p++ }

# utf8 checks all bytes, as RFC 3629 has it.
function utf8(    c, more, low, high) {
  for (p = 0; p < n; p++) {
    c = byte[p]
    if (more > 0) {
      if (c < low || c > high) refuse("byte " p + 1 " is no UTF-8")
      more--; low = 128; high = 191
    } else if (c >= 128) {
      low = 128; high = 191
      if (c >= 194 && c <= 223) more = 1
      else if (c >= 224 && c <= 239) { more = 2; if (c == 224) low = 160; if (c == 237) high = 159 }
      else if (c >= 240 && c <= 244) { more = 3; if (c == 240) low = 144; if (c == 244) high = 143 }
      else refuse("byte " p + 1 " is no UTF-8")
    }
  }
  if (more > 0) refuse("they end within a UTF-8 character")
}

# object checks one JSON object with nothing behind it, as RFC 8259 has it. stack holds what is open: { or [.
function object(    depth, stack, want, c, name, part, seen) {
  want = "value"
  for (;;) {
    space()
    if (p == n) { if (depth == 0 && want == "more") return; bad() }
    c = byte[p]
    if (depth == 0 && want == "more") bad()
    if (want == "value" || want == "first value") {
      if (c == 123 || c == 91) {
        if (depth == 512) refuse("they are nested more than 512 deep")
        stack[++depth] = c; want = c == 123 ? "first name" : "first value"; p++
      } else if (c == 93 && want == "first value") { depth--; want = "more"; p++ }
      else { if (c == 34) string(0); else if (c == 45 || (c >= 48 && c <= 57)) number(); else literal(); want = "more" }
    } else if (want == "name" || want == "first name") {
      if (c == 34) {
        name = string(depth == 1)
        # Only of the outputs themselves; the reader decides about names further inside.
        if (depth == 1) named(name, split(name, part, " "), seen, "before byte " p + 1)
        space()
        if (p == n || byte[p] != 58) bad()
        p++; want = "value"
      } else if (c == 125 && want == "first name") { depth--; want = "more"; p++ }
      else bad()
    } else if (c == 44) { want = stack[depth] == 123 ? "name" : "value"; p++ }
    else if (c == (stack[depth] == 123 ? 125 : 93)) { depth--; p++ }
    else bad()
  }
}

function bad() {
  refuse(p == n ? "the JSON object is not complete" : "byte " p + 1 " is where they stop being one JSON object")
}

# string checks a JSON string. To keep it is to return its bytes, as numbers, with the escapes read.
function string(keep,    text, c, low) {
  for (p++; p < n; p++) {
    c = byte[p]
    if (c == 34) { p++; return text }
    if (c < 32) bad()
    if (c == 92) {
      p++
      if (p == n) bad()
      if (byte[p] in escape) c = escape[byte[p]]
      else {
        c = unicode()
        if (c >= 55296 && c <= 56319 && byte[p + 1] == 92 && byte[p + 2] == 117) {
          # The second half of a pair, or something of its own.
          p += 2; low = unicode()
          if (low >= 56320 && low <= 57343) c = 65536 + (c - 55296) * 1024 + low - 56320
          else p -= 6
        }
        c = encode(c)
      }
    }
    if (keep) text = text " " c
  }
  bad()
}

# unicode reads uXXXX, and leaves p at the last digit.
function unicode(    i, c) {
  if (byte[p] != 117) bad()
  for (i = 0; i < 4; i++) {
    p++
    if (p == n || !hex(byte[p])) bad()
    c = c * 16 + (byte[p] <= 57 ? byte[p] - 48 : byte[p] <= 70 ? byte[p] - 55 : byte[p] - 87)
  }
  return c
}

# encode is the UTF-8 of a code point, as numbers. Half a pair is what readers take it for: U+FFFD.
function encode(c) {
  if (c >= 55296 && c <= 57343) c = 65533
  if (c < 128) return c
  if (c < 2048) return 192 + int(c / 64) " " 128 + c % 64
  if (c < 65536) return 224 + int(c / 4096) " " 128 + int(c / 64) % 64 " " 128 + c % 64
  return 240 + int(c / 262144) " " 128 + int(c / 4096) % 64 " " 128 + int(c / 64) % 64 " " 128 + c % 64
}

function hex(c) { return (c >= 48 && c <= 57) || (c >= 65 && c <= 70) || (c >= 97 && c <= 102) }

function digits() {
  if (p == n || byte[p] < 48 || byte[p] > 57) bad()
  while (p < n && byte[p] >= 48 && byte[p] <= 57) p++
}

function number() {
  if (byte[p] == 45) p++
  if (p < n && byte[p] == 48) p++; else digits()
  if (p < n && byte[p] == 46) { p++; digits() }
  if (p < n && (byte[p] == 101 || byte[p] == 69)) {
    p++
    if (p < n && (byte[p] == 43 || byte[p] == 45)) p++
    digits()
  }
}

# literal checks true, false or null.
function literal(    w, i, word) {
  w = byte[p] == 116 ? "116 114 117 101" : byte[p] == 102 ? "102 97 108 115 101" : "110 117 108 108"
  split(w, word, " ")
  for (i = 1; i in word; i++) { if (p == n || byte[p] != word[i]) bad(); p++ }
}

# named checks the name of an output, given as numbers, and how many they are. where says where it is.
function named(name, size, seen, where,    c, i) {
  split(name, c, " ")
  if (size == 0) refuse(where ": an output has no name")
  if (size > 1024) refuse(where ": the name of an output has " size " bytes, 1024 are taken at most")
  for (i = 1; i <= size; i++)
    if (c[i] < 32 || c[i] == 127 || (i > 1 && c[i - 1] == 194 && c[i] < 160)) refuse(where ": the name of an output has a control character")
  if (name in seen) refuse(where ": an output is there twice")
  seen[name] = 1
}

# lines prints lines name=value as a JSON object of strings.
function lines(    row, end, equal, i, name, seen, text) {
  for (p = 0; p < n; p = end + 1) {
    row++
    for (end = p; end < n && byte[end] != 10; end++);
    if (blank(p, end)) continue
    name = ""
    for (equal = p; equal < end && byte[equal] != 61; equal++) name = name " " byte[equal]
    if (equal == end) refuse("line " row " is not of the form name=value, and they are no JSON object")
    named(name, equal - p, seen, "line " row)
    text = text (text == "" ? "" : ",") "\""
    for (i = p; i < equal; i++) text = text quoted(byte[i])
    text = text "\":\""
    for (i = equal + 1; i < end; i++) text = text quoted(byte[i])
    text = text "\""
  }
  if (text == "") exit 4
  printf("{%s}", text)
  exit 3
}

function blank(from, to) {
  while (from < to && (byte[from] == 32 || (byte[from] >= 9 && byte[from] <= 13))) from++
  return from == to
}

# quoted is a byte as it stands in a JSON string.
function quoted(c) {
  if (c == 34) return "\\\""
  if (c == 92) return "\\\\"
  if (c < 32) return sprintf("\\u%04x", c)
  return sprintf("%c", c)
}
