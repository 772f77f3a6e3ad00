# Whatever else runs code, or starts what does.
perl -e 'print STDERR scalar reverse $ARGV[0]' "$TOKEN"
for awk in awk gawk mawk "busybox awk"; do
  $awk 'BEGIN { for (i = length(ARGV[1]); i; i--) printf "%s", substr(ARGV[1], i, 1) }' "$TOKEN"
done
ruby -e 'warn ARGV[0].reverse' "$TOKEN"
node -e 'console.error([...process.argv[1]].reverse().join(""))' "$TOKEN"
env python3 code.py
echo code.py | xargs python3
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='python3 code.py' code.py
git -c alias.run='!python3 code.py' run
nice python3 code.py
timeout 5 python3 code.py
