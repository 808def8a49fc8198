# pull FORM STEP... sets pulled to what another task has left: the value at the end of the steps in DAGBRIDGE_INPUTS, as text or as JSON.
pull() {
  pulled=$(LC_ALL=C awk -v form="$1" '
    function fail(sentence) { print "dagbridge: " sentence >"/dev/stderr"; failed = 1; exit 1 }
    function blank() { while (index(" \t\r\n", substr(text, at, 1))) at++ }
    # word reads a string, and returns what is between its quotes.
    function word(   start, c) {
      start = ++at
      while ((c = substr(text, at, 1)) != "\"") at += c == "\\" ? 2 : 1
      return substr(text, start, at++ - start)
    }
    # value reads past a value, and returns where it began.
    function value(   start, c, depth) {
      blank()
      start = at
      do {
        c = substr(text, at, 1)
        if (c == "\"") { word(); continue }
        if (c == "{" || c == "[") depth++
        if (c == "}" || c == "]") depth--
        at++
      } while (depth > 0 || !index(",}] \t\r\n", substr(text, at, 1)))
      return start
    }
    # member goes to a member of the object that begins here.
    function member(name,   here) {
      for (at++; ; at++) {
        blank()
        if (substr(text, at, 1) == "}") return 0
        here = decoded(word())
        blank(); at++; blank()
        if (here == name) return 1
        value(); blank()
        if (substr(text, at, 1) == "}") return 0
      }
    }
    # element goes to an element of the list that begins here.
    function element(n) {
      for (at++; ; at++) {
        blank()
        if (substr(text, at, 1) == "]") return 0
        if (n-- == 0) return 1
        value(); blank()
        if (substr(text, at, 1) == "]") return 0
      }
    }
    function hex(digits,   n, i) {
      for (i = 1; i <= 4; i++) n = n * 16 + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
      return n
    }
    function utf8(n) {
      if (n < 128) return sprintf("%c", n)
      if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
      if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
      return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64, 128 + n % 64)
    }
    # decoded is what a JSON string says.
    function decoded(s,   out, i, c, n, low) {
      if (!index(s, "\\")) return s
      while (i = index(s, "\\")) {
        out = out substr(s, 1, i - 1)
        c = substr(s, i + 1, 1)
        s = substr(s, i + 2)
        if (c == "u") {
          n = hex(s); s = substr(s, 5)
          if (n >= 55296 && n < 56320 && substr(s, 1, 2) == "\\u") {
            low = hex(substr(s, 3)); s = substr(s, 7)
            n = 65536 + (n - 55296) * 1024 + low - 56320
          }
          out = out utf8(n)
        } else if (i = index("bfnrt", c)) out = out substr("\b\f\n\r\t", i, 1)
        else out = out c
      }
      return out s
    }
    # escaped is JSON with what a shell or HTML might take for its own as escapes, as Jinja writes it.
    function escaped(s) { gsub(/</, "\\u003c", s); gsub(/>/, "\\u003e", s); gsub(/&/, "\\u0026", s); gsub(/\047/, "\\u0027", s); return s }
    function go(step, isLast,   c, from) {
      blank()
      c = substr(text, at, 1)
      if (c == "[" && step ~ /^-?[0-9]+$/) return element(step)
      from = at
      if (c == "{" && member(step)) return 1
      at = from
      return 0
    }
    BEGIN {
      for (i = 1; i < ARGC; i++) { steps[i] = ARGV[i]; ARGV[i] = "" }
      n = ARGC - 1
      while ((getline line <ENVIRON["DAGBRIDGE_INPUTS"]) > 0) text = text line "\n"
      at = 1
      if (!go(steps[1])) fail("there are no results of task " steps[1])
      i = 2
      if (i <= n && substr(steps[i], 1, 1) == "@") { # the own element of a mapped task; it may be all that is there
        blank()
        if (substr(text, at, 1) == "[" && !go(substr(steps[i], 2))) fail("there is no instance " substr(steps[i], 2) " of task " steps[1])
        i++
      }
      # The result: an output of that name, or a member of the result, or, of the result itself, all outputs.
      found = 1
      whole = at
      if (!go(steps[i])) {
        at = whole
        if (steps[i] == "return_value") { blank(); from = at; at++; blank(); found = substr(text, at, 1) != "}"; at = from }
        else if (!go("return_value") || !go(steps[i])) found = 0
      }
      for (i++; i <= n && found; i++) if (!go(steps[i])) { found = 0; missing = steps[i] }
      if (missing != "" || !found && i <= n) fail("the result of task " steps[1] " has no " (missing != "" ? missing : steps[i]))
      if (!found) json = "null"
      else { from = value(); json = substr(text, from, at - from) }
      c = substr(json, 1, 1)
      if (form == "json") printf "%sx", escaped(json)
      else if (c == "\"") printf "%sx", decoded(substr(json, 2, length(json) - 2))
      else if (c == "{" || c == "[") fail("the result of task " steps[1] " is " (c == "{" ? "an object" : "a list") ", of which a command can have a part, or | tojson")
      else if (json == "true") printf "Truex"
      else if (json == "false") printf "Falsex"
      else if (json == "null") printf "Nonex"
      else printf "%sx", json
    }' "${@:2}") || exit 1
  pulled=${pulled%x}
}
