# psql, also row by row with a cursor of its own (FETCH_COUNT).
ask() { psql -XAtq -v ON_ERROR_STOP=1 -c "SET client_min_messages = warning" "$@" 2>&1; }
list() { printf '['; awk 'NR > 1 { printf "," } { printf "\"%s\"", $0 }'; printf ']'; }
rows() { printf '['; awk -F '|' 'NR > 1 { printf "," } { printf "[\"%s\", \"%s\"]", $1, $2 }'; printf ']'; }
told() { printf '{"step": "%s", "value": %s}\n' "$1" "$2"; }
groups="SELECT city, COUNT(*) AS n FROM people WHERE film_a IN (2,3) GROUP BY city ORDER BY city"
told connects "$(ask -c 'SELECT 1')"
told tables "$(ask -c '\dt' | cut -d '|' -f 2 | list)"
told columns "$(ask -c '\d people' | cut -d '|' -f 1 | list)"
told count "$(ask -c 'SELECT COUNT(*) FROM people')"
told average "$(ask -c 'SELECT AVG(salary) FROM people')"
told groups "$(ask -c "$groups" | rows)"
told refusal "\"$(ask -c "SELECT AVG(salary) FROM people WHERE zip = 'Z1'" | tr '"\n' "' ")\""
told cursor "$(ask -v FETCH_COUNT=2 -c "$groups" | rows)"
told copy "$(ask -c "\\copy ($groups) TO STDOUT WITH (DELIMITER '|')" | rows)"
