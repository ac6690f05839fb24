# R's DBI with RPostgreSQL, a driver over libpq.
suppressPackageStartupMessages(library(RPostgreSQL))
told <- function(value) {
  quoted <- function(x) if (is.numeric(x)) format(x, digits = 15) else paste0('"', gsub('(["\\\\])', "\\\\\\1", gsub("\n", " ", x)), '"')
  if (is.data.frame(value)) {
    rows <- apply(value, 1, function(row) paste0("[", paste(sapply(trimws(row), quoted), collapse = ","), "]"))
    return(paste0("[", paste(rows, collapse = ","), "]"))
  }
  if (length(value) == 1) quoted(value) else paste0("[", paste(sapply(value, quoted), collapse = ","), "]")
}
step <- function(name, work) {
  line <- tryCatch(paste0('"value": ', told(work())), error = function(e) paste0('"error": ', told(conditionMessage(e))))
  cat(sprintf('{"step": "%s", %s}\n', name, line))
}
connection <- dbConnect(PostgreSQL(), host = Sys.getenv("PGHOST"), port = as.integer(Sys.getenv("PGPORT")),
  user = Sys.getenv("PGUSER"), password = Sys.getenv("PGPASSWORD"), dbname = Sys.getenv("PGDATABASE"))
step("connects", function() dbGetQuery(connection, "SELECT 1 AS one")$one)
step("tables", function() sort(dbListTables(connection)))
step("columns", function() dbListFields(connection, "people"))
step("count", function() dbGetQuery(connection, "SELECT COUNT(*) FROM people")$count)
step("average", function() dbGetQuery(connection, "SELECT AVG(salary) FROM people")$avg)
step("groups", function() dbGetQuery(connection, paste("SELECT city, COUNT(*) AS n FROM people",
  "WHERE film_a IN ($1,$2) GROUP BY city ORDER BY city"), c(2, 3)))
step("refusal", function() {
  said <- tryCatch({ dbSendQuery(connection, "SELECT AVG(salary) FROM people WHERE zip = 'Z1'"); "" },
    error = function(e) conditionMessage(e))
  said
})
invisible(dbDisconnect(connection))
