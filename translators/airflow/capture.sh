# The last line of stdout is the output return_value, as BashOperator's XCom is. Whoever ends the job ends the program; the rest is to
# outlive it, so that what it says last is not lost.
scratch=$(mktemp -d) && mkfifo "$scratch/copy" || exit 1
trap 'rm -rf "$scratch"' EXIT
(trap '' TERM INT HUP USR1 USR2 && exec tail -n 1 "$scratch/copy") >"$scratch/last" &
trap : TERM INT HUP USR1 USR2
bash -c "$command" | (trap '' TERM INT HUP USR1 USR2 && exec tee "$scratch/copy")
code=${PIPESTATUS[0]}
wait "$!"
if [ "$code" -eq 0 ] && [ ! -s "$DAGBRIDGE_OUTPUT" ]; then
  last=$(LC_ALL=C tr -d '\000' <"$scratch/last" | iconv -c -f UTF-8 -t UTF-8)
  last=${last%"${last##*[![:space:]]}"}
  if [ "${#last}" -gt 40000 ]; then
    echo "dagbridge: the last line has ${#last} characters, too many for a result: there is none" >&2
  else
    leave "$last" >"$DAGBRIDGE_OUTPUT"
  fi
fi
exit "$code"
