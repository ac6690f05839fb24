"""Django's ORM: models that inspectdb writes, an aggregate by group, and the iterator, which is a cursor of SQL."""

import io

import django
from common import DATABASE, HOST, PASSWORD, PORT, REFUSED, USER, refusal, step
from django.conf import settings

_SERVER = {"HOST": HOST, "PORT": PORT, "USER": USER, "PASSWORD": PASSWORD, "NAME": DATABASE}
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **_SERVER}})
django.setup()

from django.core.management import call_command  # noqa: E402 - after the settings
from django.db import connection, models  # noqa: E402


class Person(models.Model):
    person_id = models.BigIntegerField(primary_key=True)
    city = models.TextField()
    film_a = models.BigIntegerField()
    salary = models.BigIntegerField()

    class Meta:
        app_label = "shop"
        db_table = "people"
        managed = False


def written() -> list[str]:
    told = io.StringIO()
    call_command("inspectdb", "people", stdout=told)
    return [line.split(" = ")[0].strip() for line in told.getvalue().splitlines() if " = models." in line]


def raw() -> object:
    with connection.cursor() as cursor:
        cursor.execute(REFUSED)
        return cursor.fetchall()


by_city = Person.objects.filter(film_a__in=[2, 3]).values("city").annotate(n=models.Count("*")).order_by("city")
step("connects", lambda: connection.ensure_connection() or 1)
step("tables", lambda: sorted(connection.introspection.table_names()))
step("columns", written)
step("count", Person.objects.count)
step("average", lambda: Person.objects.aggregate(models.Avg("salary"))["salary__avg"])
step("groups", lambda: [[row["city"], row["n"]] for row in by_city])
step("refusal", lambda: refusal(raw))
step("cursor", lambda: [[row["city"], row["n"]] for row in by_city.iterator(chunk_size=2)])
