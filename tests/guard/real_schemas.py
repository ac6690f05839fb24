# ruff: noqa: E501 - statements as they are written elsewhere
"""Schemas that many people know, with their names, types and constraints as they are; the people in them are made up.

Beside each stands what a careful person would say that its tables and columns are, as `Truth`. Roles: `where` (chosen
and grouped by), `sum` (summed up), `date` (shown by a grain), `hide`, `key` (names rows; never shown). Several, with a
bar between them, are all right.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from kgather._guard.policy import Policy, Table

Statements = Sequence[str]


class People(NamedTuple):
    """A table of people: the column that names them, and the roles of its other columns, by role."""

    unit: str
    roles: Mapping[str, str]


class Of(NamedTuple):
    """A table that hangs on a table of people: its columns, those they refer to, and the roles of its others."""

    parent: str
    columns: Mapping[str, str]
    roles: Mapping[str, str]


PUBLIC, LEFT_OUT, EITHER = "public", "left out", "public|left out"
Truth = Mapping[str, People | Of | str]


class Schema(NamedTuple):
    """A database and what is true of it."""

    statements: Callable[..., Statements]
    truth: Truth


RANDOM = "create temp macro kr(i, tag, n) as (hash(i, tag) % n)::bigint"
"""A number from 0 to n - 1 that follows from i."""
PICK = "create temp macro pick(i, tag, l) as l[1 + (hash(i, tag) % len(l))::bigint]"
"""Something of a list."""
SKEWED = "create temp macro skewed(i, tag, n) as floor(n * pow((hash(i, tag) % 1000000) / 1000000.0, 1.6))::bigint"
"""A number below n; small ones are more frequent."""


def build(file: Path, statements: Statements) -> Path:
    """Make a database."""
    with duckdb.connect(file) as con:
        for macro in (RANDOM, PICK, SKEWED):
            con.execute(macro)
        for statement in statements:
            con.execute(statement)
    return file


# TPC-H, as dbgen makes it: no keys are declared


def tpch(people: int = 3000, *, keys: bool = False) -> Statements:
    def key(text: str) -> str:
        return text if keys else ""

    orders, parts, suppliers = 10 * people, 400, 60
    regions = "['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST']"
    segments = "['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY']"
    return [
        f"create table region (r_regionkey integer not null{key(' primary key')}, r_name varchar not null,"
        " r_comment varchar)",
        f"insert into region select i, {regions}[i + 1], 'region ' || i from range(5) t(i)",
        f"create table nation (n_nationkey integer not null{key(' primary key')}, n_name varchar not null,"
        " n_regionkey integer not null, n_comment varchar)",
        "insert into nation select i, 'NATION' || i, i % 5, 'nation ' || i from range(25) t(i)",
        f"create table part (p_partkey bigint not null{key(' primary key')}, p_name varchar not null,"
        " p_mfgr varchar not null, p_brand varchar not null, p_type varchar not null, p_size integer not null,"
        " p_container varchar not null, p_retailprice decimal(15,2) not null, p_comment varchar not null)",
        "insert into part select i, 'part ' || i, 'Manufacturer#' || 1 + i % 5, 'Brand#' || 10 + i % 25,"
        f" pick(i, 't', ['PROMO TIN', 'STANDARD STEEL', 'ECONOMY BRASS']), 1 + kr(i, 's', 50), 'JUMBO BOX',"
        f" 900 + i, 'c' || i from range(1, {parts + 1}) t(i)",
        f"create table supplier (s_suppkey bigint not null{key(' primary key')}, s_name varchar not null,"
        " s_address varchar not null, s_nationkey integer not null, s_phone varchar not null,"
        " s_acctbal decimal(15,2) not null, s_comment varchar not null)",
        f"insert into supplier select i, 'Supplier#' || i, 'addr' || i, i % 25, '1' || i, i, 'c' || i"
        f" from range(1, {suppliers + 1}) t(i)",
        "create table partsupp (ps_partkey bigint not null, ps_suppkey bigint not null, ps_availqty bigint not null,"
        f" ps_supplycost decimal(15,2) not null, ps_comment varchar not null{key(', primary key (ps_partkey, ps_suppkey)')})",
        f"insert into partsupp select 1 + i % {parts}, 1 + (i // {parts} * 7 + i) % {suppliers}, kr(i, 'q', 9999),"
        f" kr(i, 'c', 100000) / 100, 'c' || i from range({4 * parts}) t(i)",
        f"create table customer (c_custkey bigint not null{key(' primary key')}, c_name varchar not null,"
        " c_address varchar not null, c_nationkey integer not null, c_phone varchar not null,"
        " c_acctbal decimal(15,2) not null, c_mktsegment varchar not null, c_comment varchar not null)",
        "insert into customer select i, 'Customer#' || i, 'street ' || kr(i, 'a', 99999), kr(i, 'n', 25),"
        f" '25-' || kr(i, 'p', 9999999), kr(i, 'b', 1099999) / 100 - 999, pick(i, 'm', {segments}),"
        f" 'likes ' || kr(i, 'x', 999999) from range(1, {people + 1}) t(i)",
        f"create table orders (o_orderkey bigint not null{key(' primary key')}, o_custkey bigint not null"
        f"{key(' references customer (c_custkey)')}, o_orderstatus varchar not null,"
        " o_totalprice decimal(15,2) not null, o_orderdate date not null, o_orderpriority varchar not null,"
        " o_clerk varchar not null, o_shippriority integer not null, o_comment varchar not null)",
        f"insert into orders select 1 + i // 8 * 32 + i % 8, 1 + kr(i, 'c', {people} * 2 // 3) * 3 // 2,"
        " pick(i, 's', ['O', 'F', 'P', 'F', 'O']), 900 + kr(i, 't', 50000000) / 100,"
        " date '1992-01-01' + kr(i, 'd', 2406)::integer,"
        " pick(i, 'p', ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW']),"
        f" 'Clerk#' || 1 + kr(i, 'k', 200), 0, 'sleeps ' || kr(i, 'x', 999999) from range({orders}) t(i)",
        f"create table lineitem (l_orderkey bigint not null{key(' references orders (o_orderkey)')},"
        " l_partkey bigint not null, l_suppkey bigint not null, l_linenumber bigint not null,"
        " l_quantity decimal(15,2) not null, l_extendedprice decimal(15,2) not null,"
        " l_discount decimal(15,2) not null, l_tax decimal(15,2) not null, l_returnflag varchar not null,"
        " l_linestatus varchar not null, l_shipdate date not null, l_commitdate date not null,"
        " l_receiptdate date not null, l_shipinstruct varchar not null, l_shipmode varchar not null,"
        f" l_comment varchar not null{key(', primary key (l_orderkey, l_linenumber)')})",
        f"insert into lineitem select o_orderkey, 1 + kr(h, 'p', {parts}), 1 + kr(h, 's', {suppliers}), n,"
        " 1 + kr(h, 'q', 50), (1 + kr(h, 'q', 50)) * (900 + kr(h, 'p', 1200)), kr(h, 'd', 11) / 100,"
        " kr(h, 't', 9) / 100, pick(h, 'r', ['A', 'N', 'R']), pick(h, 'l', ['F', 'O']),"
        " o_orderdate + 1 + kr(h, 'sd', 121)::integer, o_orderdate + 30 + kr(h, 'cd', 61)::integer,"
        " o_orderdate + 5 + kr(h, 'rd', 140)::integer,"
        " pick(h, 'i', ['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN']),"
        " pick(h, 'm', ['AIR', 'FOB', 'MAIL', 'RAIL', 'REG AIR', 'SHIP', 'TRUCK']), 'quick ' || kr(h, 'x', 999999)"
        " from (select o_orderkey, o_orderdate, n, o_orderkey * 8 + n as h from orders, range(1, 8) u(n)"
        " where n <= 1 + kr(o_orderkey, 'lines', 7))",
    ]


TPCH: Truth = {
    "customer": People(
        "c_custkey",
        {
            "hide": "c_name c_address c_phone c_comment",
            "where": "c_nationkey c_mktsegment",
            "where|sum": "c_acctbal",
        },
    ),
    "orders": People(
        "o_custkey",
        {
            "key|hide": "o_orderkey",
            "where": "o_orderstatus o_orderpriority",
            "where|hide": "o_shippriority",
            "where|sum": "o_totalprice",
            "date": "o_orderdate",
            "hide": "o_clerk o_comment",
        },
    ),
    "lineitem": Of(
        "orders",
        {"l_orderkey": "o_orderkey"},
        {
            "where|hide": "l_suppkey l_linenumber",
            "where": "l_partkey l_quantity l_discount l_tax l_returnflag l_linestatus l_shipinstruct l_shipmode",
            "where|sum": "l_extendedprice",
            "date": "l_shipdate l_commitdate l_receiptdate",
            "hide": "l_comment",
        },
    ),
    "nation": PUBLIC,
    "region": PUBLIC,
    "part": PUBLIC,
    "partsupp": EITHER,
    "supplier": EITHER,
}


# Chinook


def chinook(people: int = 1200) -> Statements:
    countries = "['USA', 'USA', 'USA', 'Canada', 'Brazil', 'France', 'Germany', 'Norway', 'Portugal', 'India']"
    cities = "['Paris', 'Oslo', 'Boston', 'Toronto', 'Berlin', 'Porto', 'Delhi', 'Reno', 'Rio', 'Madison']"
    return [
        "create table Artist (ArtistId integer primary key, Name varchar(120))",
        "insert into Artist select i, 'Band ' || i from range(1, 51) t(i)",
        "create table Album (AlbumId integer primary key, Title varchar(160) not null,"
        " ArtistId integer not null references Artist (ArtistId))",
        "insert into Album select i, 'Album ' || i, 1 + i % 50 from range(1, 101) t(i)",
        "create table Genre (GenreId integer primary key, Name varchar(120))",
        "insert into Genre select i, 'Genre ' || i from range(1, 26) t(i)",
        "create table MediaType (MediaTypeId integer primary key, Name varchar(120))",
        "insert into MediaType select i, 'Type ' || i from range(1, 6) t(i)",
        "create table Track (TrackId integer primary key, Name varchar(200) not null,"
        " AlbumId integer references Album (AlbumId), MediaTypeId integer not null references MediaType (MediaTypeId),"
        " GenreId integer references Genre (GenreId), Composer varchar(220), Milliseconds integer not null,"
        " Bytes integer, UnitPrice numeric(10,2) not null)",
        "insert into Track select i, 'Song ' || i, 1 + i % 100, 1 + i % 5, 1 + skewed(i, 'g', 25), 'C ' || i % 90,"
        " 100000 + i * 10, i * 999, 0.99 from range(1, 501) t(i)",
        "create table Playlist (PlaylistId integer primary key, Name varchar(120))",
        "insert into Playlist select i, 'List ' || i from range(1, 19) t(i)",
        "create table PlaylistTrack (PlaylistId integer not null references Playlist (PlaylistId),"
        " TrackId integer not null references Track (TrackId), primary key (PlaylistId, TrackId))",
        "insert into PlaylistTrack select 1 + i % 18, 1 + i from range(500) t(i)",
        "create table Employee (EmployeeId integer primary key, LastName varchar(20) not null,"
        " FirstName varchar(20) not null, Title varchar(30), ReportsTo integer references Employee (EmployeeId),"
        " BirthDate timestamp, HireDate timestamp, Address varchar(70), City varchar(40), State varchar(40),"
        " Country varchar(40), PostalCode varchar(10), Phone varchar(24), Fax varchar(24), Email varchar(60))",
        "insert into Employee select i, 'L' || i, 'F' || i, 'Sales Support Agent', null,"
        " timestamp '1960-01-01' + interval (i * 400) day, timestamp '2002-01-01' + interval (i) month, 'a' || i,"
        " 'Calgary', 'AB', 'Canada', 'T2P ' || i, '+1 403 ' || i, '+1 403 ' || i, 'e' || i from range(1, 9) t(i)",
        "create table Customer (CustomerId integer primary key, FirstName varchar(40) not null,"
        " LastName varchar(20) not null, Company varchar(80), Address varchar(70), City varchar(40),"
        " State varchar(40), Country varchar(40), PostalCode varchar(10), Phone varchar(24), Fax varchar(24),"
        " Email varchar(60) not null, SupportRepId integer references Employee (EmployeeId))",
        "insert into Customer select i, 'F' || kr(i, 'f', 300), 'L' || kr(i, 'l', 900),"
        " case when i % 6 = 0 then 'Firm ' || i end, kr(i, 'a', 999) || ' Main St',"
        f" pick(i, 'c', {cities}), case when i % 2 = 0 then pick(i, 's', ['CA', 'NY', 'ON', 'SP', 'MA']) end,"
        f" pick(i, 'n', {countries}), '' || 10000 + kr(i, 'z', 89999), '+1 ' || kr(i, 'p', 9999999),"
        " case when i % 5 = 0 then '+1 ' || kr(i, 'x', 9999999) end, 'u' || i || '@example.com', 3 + i % 3"
        f" from range(1, {people + 1}) t(i)",
        "create table Invoice (InvoiceId integer primary key, CustomerId integer not null references Customer"
        " (CustomerId), InvoiceDate timestamp not null, BillingAddress varchar(70), BillingCity varchar(40),"
        " BillingState varchar(40), BillingCountry varchar(40), BillingPostalCode varchar(10),"
        " Total numeric(10,2) not null)",
        "insert into Invoice select i, CustomerId, timestamp '2021-01-01' + interval (kr(i, 'd', 1825)) day, Address,"
        " City, State, Country, PostalCode, pick(i, 't', [0.99, 1.98, 3.96, 5.94, 8.91, 13.86]) + kr(i, 'u', 3)"
        f" from (select 1 + kr(i, 'c', {people}) as c, i from range(1, {7 * people}) t(i)) join Customer"
        " on CustomerId = c",
        "create table InvoiceLine (InvoiceLineId integer primary key, InvoiceId integer not null references Invoice"
        " (InvoiceId), TrackId integer not null references Track (TrackId), UnitPrice numeric(10,2) not null,"
        " Quantity integer not null)",
        "insert into InvoiceLine select row_number() over (), InvoiceId, 1 + skewed(InvoiceId * 9 + n, 't', 499),"
        " pick(InvoiceId + n, 'p', [0.99, 0.99, 1.99]), 1 from Invoice, range(1, 6) u(n)"
        " where n <= 1 + kr(InvoiceId, 'n', 5)",
    ]


CHINOOK: Truth = {
    "Customer": People(
        "CustomerId",
        {
            "hide": "FirstName LastName Company Address PostalCode Phone Fax Email SupportRepId",
            "where": "City State Country",
        },
    ),
    "Invoice": People(
        "CustomerId",
        {
            "key|hide": "InvoiceId",
            "date": "InvoiceDate",
            "hide": "BillingAddress BillingPostalCode",
            "where|hide": "BillingCity BillingState BillingCountry",  # each repeats the customer's
            "where|sum": "Total",
        },
    ),
    "InvoiceLine": Of(
        "Invoice",
        {"InvoiceId": "InvoiceId"},
        {"hide|key": "InvoiceLineId", "where": "TrackId", "where|sum": "UnitPrice", "where|sum|hide": "Quantity"},
    ),
    "Employee": LEFT_OUT,
    "Artist": PUBLIC,
    "Album": PUBLIC,
    "Genre": PUBLIC,
    "MediaType": PUBLIC,
    "Track": PUBLIC,
    "Playlist": PUBLIC,
    "PlaylistTrack": PUBLIC,
}


# Sakila


def sakila(people: int = 1200) -> Statements:
    now = "last_update timestamp not null default timestamp '2006-02-15 04:34:33'"
    return [
        "create type mpaa_rating as enum ('G', 'PG', 'PG-13', 'R', 'NC-17')",
        f"create table actor (actor_id integer primary key, first_name varchar(45) not null,"
        f" last_name varchar(45) not null, {now})",
        "insert into actor (actor_id, first_name, last_name) select i, 'A' || i, 'B' || i from range(1, 201) t(i)",
        f"create table country (country_id integer primary key, country varchar(50) not null, {now})",
        "insert into country (country_id, country) select i, 'Country ' || i from range(1, 110) t(i)",
        f"create table city (city_id integer primary key, city varchar(50) not null,"
        f" country_id integer not null references country (country_id), {now})",
        "insert into city (city_id, city, country_id) select i, 'City ' || i, 1 + i % 109 from range(1, 601) t(i)",
        f"create table address (address_id integer primary key, address varchar(50) not null, address2 varchar(50),"
        " district varchar(20) not null, city_id integer not null references city (city_id), postal_code varchar(10),"
        f" phone varchar(20) not null, {now})",
        "insert into address (address_id, address, district, city_id, postal_code, phone)"
        " select i, kr(i, 'a', 9999) || ' Way', 'District ' || kr(i, 'd', 300), 1 + kr(i, 'c', 600),"
        f" '' || 10000 + kr(i, 'z', 89999), '' || kr(i, 'p', 999999999) from range(1, {people + 6}) t(i)",
        f"create table language (language_id integer primary key, name varchar(20) not null, {now})",
        "insert into language (language_id, name) select i, 'L' || i from range(1, 7) t(i)",
        f"create table category (category_id integer primary key, name varchar(25) not null, {now})",
        "insert into category (category_id, name) select i, 'Cat ' || i from range(1, 17) t(i)",
        "create table film (film_id integer primary key, title varchar(255) not null, description text,"
        " release_year integer, language_id integer not null references language (language_id),"
        " original_language_id integer references language (language_id), rental_duration smallint not null,"
        " rental_rate decimal(4,2) not null, length smallint, replacement_cost decimal(5,2) not null,"
        f" rating mpaa_rating, special_features varchar[], {now})",
        "insert into film (film_id, title, description, release_year, language_id, rental_duration, rental_rate,"
        " length, replacement_cost, rating) select i, 'Film ' || i, 'A tale of ' || i, 2006, 1, 3 + i % 5,"
        " pick(i, 'r', [0.99, 2.99, 4.99]), 46 + i % 140, 9.99 + i % 20, pick(i, 'm', ['G', 'PG', 'PG-13', 'R', 'NC-17'])::mpaa_rating"
        " from range(1, 401) t(i)",
        f"create table film_actor (actor_id integer not null references actor (actor_id),"
        f" film_id integer not null references film (film_id), {now}, primary key (actor_id, film_id))",
        "insert into film_actor (actor_id, film_id) select 1 + i % 200, 1 + i // 200 * 20 + i % 20"
        " from range(4000) t(i)",
        f"create table film_category (film_id integer not null references film (film_id),"
        f" category_id integer not null references category (category_id), {now}, primary key (film_id, category_id))",
        "insert into film_category (film_id, category_id) select i, 1 + i % 16 from range(1, 401) t(i)",
        "create table film_text (film_id integer primary key, title varchar(255) not null, description text)",
        "insert into film_text select film_id, title, description from film",
        "create table staff (staff_id integer primary key, first_name varchar(45) not null,"
        " last_name varchar(45) not null, address_id integer not null references address (address_id), picture blob,"
        " email varchar(50), store_id integer not null, active boolean not null default true,"
        f" username varchar(16) not null, password varchar(40), {now})",
        "insert into staff (staff_id, first_name, last_name, address_id, email, store_id, username)"
        " select i, 'Mike', 'H', i, 'm' || i, i, 'u' || i from range(1, 3) t(i)",
        f"create table store (store_id integer primary key, manager_staff_id integer not null references staff"
        f" (staff_id), address_id integer not null references address (address_id), {now})",
        "insert into store (store_id, manager_staff_id, address_id) select i, i, i from range(1, 3) t(i)",
        f"create table inventory (inventory_id integer primary key, film_id integer not null references film"
        f" (film_id), store_id integer not null references store (store_id), {now})",
        "insert into inventory (inventory_id, film_id, store_id) select i, 1 + i % 400, 1 + i % 2"
        " from range(1, 1501) t(i)",
        "create table customer (customer_id integer primary key, store_id integer not null references store (store_id),"
        " first_name varchar(45) not null, last_name varchar(45) not null, email varchar(50),"
        " address_id integer not null references address (address_id), active boolean not null default true,"
        f" create_date timestamp not null, {now})",
        "insert into customer (customer_id, store_id, first_name, last_name, email, address_id, active, create_date)"
        " select i, 1 + kr(i, 's', 2), 'F' || kr(i, 'f', 500), 'L' || i, 'e' || i || '@sakilacustomer.org', i + 5,"
        f" kr(i, 'a', 40) > 0, timestamp '2006-02-14 22:04:36' from range(1, {people + 1}) t(i)",
        "create table rental (rental_id integer primary key, rental_date timestamp not null,"
        " inventory_id integer not null references inventory (inventory_id),"
        " customer_id integer not null references customer (customer_id), return_date timestamp,"
        f" staff_id integer not null references staff (staff_id), {now})",
        "insert into rental (rental_id, rental_date, inventory_id, customer_id, return_date, staff_id)"
        " select i, timestamp '2005-05-24' + interval (kr(i, 'd', 90 * 1440)) minute, 1 + kr(i, 'v', 1500),"
        f" 1 + kr(i, 'c', {people}), timestamp '2005-05-26' + interval (kr(i, 'd', 90 * 1440)) minute"
        f" + interval (kr(i, 'r', 9)) day, 1 + kr(i, 'st', 2) from range(1, {20 * people}) t(i)",
        "create table payment (payment_id integer primary key, customer_id integer not null references customer"
        " (customer_id), staff_id integer not null references staff (staff_id), rental_id integer references rental"
        f" (rental_id), amount decimal(5,2) not null, payment_date timestamp not null, {now})",
        "insert into payment (payment_id, customer_id, staff_id, rental_id, amount, payment_date)"
        " select rental_id, customer_id, staff_id, rental_id, pick(rental_id, 'a', [0.99, 2.99, 4.99]) +"
        " kr(rental_id, 'b', 4), rental_date from rental",
        "create view customer_list as select customer_id as id, first_name || ' ' || last_name as name,"
        ' a.address, a.postal_code as "zip code", a.phone, city.city, country.country, store_id as sid'
        " from customer join address a using (address_id) join city using (city_id) join country using (country_id)",
        "create view sales_by_store as select store_id, sum(amount) as total_sales from payment join rental using"
        " (rental_id) join inventory using (inventory_id) group by store_id",
    ]


SAKILA: Truth = {
    "customer": People(
        "customer_id",
        {
            "where": "store_id active",
            "hide": "first_name last_name email address_id",
            "date|hide": "create_date last_update",  # the same in all rows
        },
    ),
    "rental": People(
        "customer_id",
        {
            "hide|key": "rental_id",
            "date": "rental_date return_date",
            "where": "inventory_id",
            "hide": "staff_id",
            "date|hide": "last_update",
        },
    ),
    "payment": People(
        "customer_id",
        {
            "hide|key": "payment_id",
            "hide": "staff_id rental_id",
            "where|sum": "amount",
            "date": "payment_date",
            "date|hide": "last_update",
        },
    ),
    "staff": LEFT_OUT,
    "address": LEFT_OUT,
    "actor": LEFT_OUT,
    "film_actor": EITHER,
    "store": EITHER,
    "customer_list": LEFT_OUT,
    "sales_by_store": LEFT_OUT,
    "film": PUBLIC,
    "film_text": PUBLIC,
    "film_category": PUBLIC,
    "category": PUBLIC,
    "language": PUBLIC,
    "inventory": PUBLIC,
    "city": PUBLIC,
    "country": PUBLIC,
}


# Northwind


def northwind(people: int = 1500) -> Statements:
    countries = "['USA', 'Germany', 'France', 'UK', 'Brazil', 'Spain', 'Mexico', 'Italy']"
    titles = "['Owner', 'Sales Agent', 'Marketing Manager', 'Order Administrator']"
    return [
        'create table Categories ("CategoryID" integer primary key, "CategoryName" varchar(15) not null,'
        ' "Description" text, "Picture" blob)',
        "insert into Categories select i, 'Cat ' || i, 'd', null from range(1, 9) t(i)",
        'create table Suppliers ("SupplierID" integer primary key, "CompanyName" varchar(40) not null,'
        ' "ContactName" varchar(30), "ContactTitle" varchar(30), "Address" varchar(60), "City" varchar(15),'
        ' "Region" varchar(15), "PostalCode" varchar(10), "Country" varchar(15), "Phone" varchar(24),'
        ' "Fax" varchar(24), "HomePage" text)',
        "insert into Suppliers select i, 'Co ' || i, 'N ' || i, 'Owner', 'a' || i, 'c' || i, null, 'z', 'UK',"
        " 'p' || i, 'f' || i, null from range(1, 30) t(i)",
        'create table Shippers ("ShipperID" integer primary key, "CompanyName" varchar(40) not null,'
        ' "Phone" varchar(24))',
        "insert into Shippers select i, 'Ship ' || i, 'p' || i from range(1, 4) t(i)",
        'create table Products ("ProductID" integer primary key, "ProductName" varchar(40) not null,'
        ' "SupplierID" integer references Suppliers ("SupplierID"),'
        ' "CategoryID" integer references Categories ("CategoryID"), "QuantityPerUnit" varchar(20),'
        ' "UnitPrice" decimal(19,4), "UnitsInStock" smallint, "UnitsOnOrder" smallint, "ReorderLevel" smallint,'
        ' "Discontinued" boolean not null)',
        "insert into Products select i, 'Prod ' || i, 1 + i % 29, 1 + i % 8, '10 boxes', 5 + i, i, 0, 10, i % 9 = 0"
        " from range(1, 78) t(i)",
        'create table Region ("RegionID" integer primary key, "RegionDescription" varchar(50) not null)',
        "insert into Region select i, 'R' || i from range(1, 5) t(i)",
        'create table Territories ("TerritoryID" varchar(20) primary key, "TerritoryDescription" varchar(50)'
        ' not null, "RegionID" integer not null references Region ("RegionID"))',
        "insert into Territories select '' || 10000 + i, 'T' || i, 1 + i % 4 from range(1, 54) t(i)",
        'create table Employees ("EmployeeID" integer primary key, "LastName" varchar(20) not null,'
        ' "FirstName" varchar(10) not null, "Title" varchar(30), "TitleOfCourtesy" varchar(25), "BirthDate" timestamp,'
        ' "HireDate" timestamp, "Address" varchar(60), "City" varchar(15), "Region" varchar(15),'
        ' "PostalCode" varchar(10), "Country" varchar(15), "HomePhone" varchar(24), "Extension" varchar(4),'
        ' "Photo" blob, "Notes" text, "ReportsTo" integer references Employees ("EmployeeID"))',
        "insert into Employees select i, 'L' || i, 'F' || i, 'Rep', 'Ms.', timestamp '1960-01-01', timestamp"
        " '1992-01-01', 'a', 'London', null, 'z', 'UK', 'h' || i, '' || i, null, 'notes', null"
        " from range(1, 10) t(i)",
        'create table EmployeeTerritories ("EmployeeID" integer not null references Employees ("EmployeeID"),'
        ' "TerritoryID" varchar(20) not null references Territories ("TerritoryID"),'
        ' primary key ("EmployeeID", "TerritoryID"))',
        "insert into EmployeeTerritories select 1 + i % 9, '' || 10001 + i from range(50) t(i)",
        'create table Customers ("CustomerID" varchar(5) primary key, "CompanyName" varchar(40) not null,'
        ' "ContactName" varchar(30), "ContactTitle" varchar(30), "Address" varchar(60), "City" varchar(15),'
        ' "Region" varchar(15), "PostalCode" varchar(10), "Country" varchar(15), "Phone" varchar(24),'
        ' "Fax" varchar(24))',
        "insert into Customers select chr((65 + i // 17576 % 26)::integer) || chr((65 + i // 676 % 26)::integer) ||"
        " chr((65 + i // 26 % 26)::integer) || chr((65 + i % 26)::integer) || 'X', 'Co ' || i,"
        f" 'N ' || kr(i, 'n', 9999), pick(i, 't', {titles}), kr(i, 'a', 99) || ' Street ' || i,"
        " 'City ' || kr(i, 'y', 12), case when i % 3 = 0 then pick(i, 'r', ['SP', 'WA', 'BC']) end,"
        f" '' || kr(i, 'z', 99999), pick(i, 'c', {countries}), '(1) ' || i * 77,"
        f" case when i % 4 = 0 then '(2) ' || i * 79 end from range({people}) t(i)",
        'create table CustomerDemographics ("CustomerTypeID" varchar(10) primary key, "CustomerDesc" text)',
        'create table CustomerCustomerDemo ("CustomerID" varchar(5) not null references Customers ("CustomerID"),'
        ' "CustomerTypeID" varchar(10) not null references CustomerDemographics ("CustomerTypeID"),'
        ' primary key ("CustomerID", "CustomerTypeID"))',
        'create table Orders ("OrderID" integer primary key, "CustomerID" varchar(5) references Customers'
        ' ("CustomerID"), "EmployeeID" integer references Employees ("EmployeeID"), "OrderDate" timestamp,'
        ' "RequiredDate" timestamp, "ShippedDate" timestamp, "ShipVia" integer references Shippers ("ShipperID"),'
        ' "Freight" decimal(19,4), "ShipName" varchar(40), "ShipAddress" varchar(60), "ShipCity" varchar(15),'
        ' "ShipRegion" varchar(15), "ShipPostalCode" varchar(10), "ShipCountry" varchar(15))',
        "insert into Orders select 10248 + row_number() over (), \"CustomerID\", 1 + kr(h, 'e', 9), d, d + interval 28 day,"
        " case when h % 30 > 0 then d + interval (1 + kr(h, 's', 20)) day end, 1 + kr(h, 'v', 3),"
        ' kr(h, \'f\', 100000) / 100, "CompanyName", "Address",'
        " case when h % 9 = 0 then 'City ' || kr(h, 'cc', 12) else \"City\" end, \"Region\","
        " \"PostalCode\", \"Country\" from (select *, timestamp '2022-07-04' + interval (kr(h, 'd', 670)) day as d"
        ' from (select c.*, hash(c."CustomerID", n) % 1000000007 as h from Customers c, range(1, 15) u(n)'
        ' where n <= 1 + hash(c."CustomerID") % 14))',
        'create table "Order Details" ("OrderID" integer not null references Orders ("OrderID"),'
        ' "ProductID" integer not null references Products ("ProductID"), "UnitPrice" decimal(19,4) not null,'
        ' "Quantity" smallint not null, "Discount" real not null, primary key ("OrderID", "ProductID"))',
        'insert into "Order Details" select "OrderID", p, 5 + p, 1 + kr("OrderID" + p, \'q\', 60),'
        ' pick("OrderID" + p, \'d\', [0, 0, 0, 0.05, 0.1, 0.15, 0.2, 0.25]) from (select distinct "OrderID",'
        ' 1 + kr("OrderID" * 9 + n, \'p\', 77) as p from Orders, range(1, 6) u(n) where n <= 1 + "OrderID" % 4)',
    ]


NORTHWIND: Truth = {
    "Customers": People(
        "CustomerID",
        {
            "hide": "CompanyName ContactName Address PostalCode Phone Fax",
            "where": "ContactTitle City Region Country",
        },
    ),
    "Orders": People(
        "CustomerID",
        {
            "hide|key": "OrderID",
            "hide": "EmployeeID ShipName ShipAddress ShipPostalCode",
            "date": "OrderDate RequiredDate ShippedDate",
            "where": "ShipVia ShipCity",
            "where|hide": "ShipRegion ShipCountry",  # each repeats the customer's
            "where|sum": "Freight",
        },
    ),
    "Order Details": Of(
        "Orders",
        {"OrderID": "OrderID"},
        {"where": "ProductID Quantity Discount", "where|sum": "UnitPrice"},
    ),
    "CustomerCustomerDemo": "left out|people",  # it is empty
    "CustomerDemographics": EITHER,
    "Employees": LEFT_OUT,
    "EmployeeTerritories": LEFT_OUT,
    "Suppliers": EITHER,
    "Shippers": EITHER,
    "Products": PUBLIC,
    "Categories": PUBLIC,
    "Region": PUBLIC,
    "Territories": PUBLIC,
}


# Jaffle shop: as it is loaded, and as its marts are


def jaffle_raw(people: int = 1000) -> Statements:
    return [
        "create table raw_customers (id integer, first_name varchar, last_name varchar)",
        f"insert into raw_customers select i, 'F' || kr(i, 'f', 99), chr(65 + (i % 26)::integer) || '.'"
        f" from range(1, {people + 1}) t(i)",
        "create table raw_orders (id integer, user_id integer, order_date date, status varchar)",
        f"insert into raw_orders select i, 1 + kr(i, 'u', {people} * 62 // 100), date '2018-01-01' +"
        " kr(i, 'd', 99)::integer, pick(i, 's', ['completed', 'completed', 'completed', 'placed', 'shipped',"
        f" 'returned', 'return_pending']) from range(1, {people * 5}) t(i)",
        "create table raw_payments (id integer, order_id integer, payment_method varchar, amount integer)",
        "insert into raw_payments select row_number() over (), id, pick(id * 3 + n, 'm', ['credit_card',"
        " 'bank_transfer', 'coupon', 'gift_card', 'credit_card']), 100 * kr(id * 7 + n, 'a', 31)"
        " from raw_orders, range(1, 3) u(n) where n = 1 or id % 7 = 0",
    ]


JAFFLE_RAW: Truth = {
    "raw_customers": People("id", {"hide": "first_name last_name"}),
    "raw_orders": People("user_id", {"hide|key": "id", "date": "order_date", "where": "status"}),
    "raw_payments": Of(
        "raw_orders", {"order_id": "id"}, {"hide|key": "id", "where": "payment_method", "where|sum": "amount"}
    ),
}


def jaffle_mart(people: int = 1000) -> Statements:
    methods = ("credit_card", "coupon", "bank_transfer", "gift_card")
    amounts = ", ".join(
        f"coalesce(sum(amount) filter (payment_method = '{name}'), 0) / 100 as {name}_amount" for name in methods
    )
    return [
        *jaffle_raw(people),
        "create view stg_customers as select id as customer_id, first_name, last_name from raw_customers",
        "create view stg_orders as select id as order_id, user_id as customer_id, order_date, status from raw_orders",
        "create view stg_payments as select id as payment_id, order_id, payment_method, amount / 100 as amount"
        " from raw_payments",
        f"create table orders as select o.order_id, customer_id, order_date, status, {amounts},"
        " sum(amount) / 100 as amount from stg_orders o join raw_payments using (order_id) group by all",
        "create table customers as select customer_id, any_value(first_name) as first_name,"
        " any_value(last_name) as last_name, min(order_date) as first_order, max(order_date) as most_recent_order,"
        " count(order_id) as number_of_orders, sum(amount) as customer_lifetime_value"
        " from stg_customers left join orders using (customer_id) group by all",
        "drop view stg_customers",
        "drop view stg_orders",
        "drop view stg_payments",
        "drop table raw_customers",
        "drop table raw_orders",
        "drop table raw_payments",
    ]


JAFFLE_MART: Truth = {
    "customers": People(
        "customer_id",
        {
            "hide": "first_name last_name",
            "date": "first_order most_recent_order",
            "where": "number_of_orders",
            "where|sum": "customer_lifetime_value",
        },
    ),
    "orders": People(
        "customer_id",
        {
            "hide|key": "order_id",
            "date": "order_date",
            "where": "status",
            "where|sum": "credit_card_amount coupon_amount bank_transfer_amount gift_card_amount amount",
        },
    ),
}


# Adult


def adult(csv: Path, *, named: bool) -> Statements:
    """The census file. named: with a column that names people, which the file has not."""
    number = "row_number() over () as person_id, " if named else ""
    return [f"create table adult as select {number}* from read_csv('{csv}', delim = ';', nullstr = '?')"]


ADULT: Mapping[str, str] = {
    "where": "sex age race marital-status education native-country workclass occupation salary-class"
}


# Compared


def compared(truth: Truth, policy: Policy, text: str) -> tuple[int, list[str]]:
    """How many tables and columns a proposal has right, and which it has wrong."""
    right, wrong = 0, []
    for name, wanted in truth.items():
        entry = policy.tables.get(name)
        found = _as_roles(entry) if entry is not None else {}
        if isinstance(wanted, str):
            is_what = (
                "people"
                if entry is not None
                else PUBLIC
                if re.search(rf'^  # (DECIDE: does )?"?{name}"? tell nothing', text, re.M)
                else LEFT_OUT
            )
            ok = is_what in wanted.split("|")
            right, wrong = right + ok, wrong + ([] if ok else [f"{name} is {is_what}"])
            continue
        if entry is None:
            wrong += [f"{name} is missing"] + [f"{name}.{c}" for cs in wanted.roles.values() for c in cs.split()]
            continue
        if isinstance(wanted, People):
            ok = entry.privacy_unit == wanted.unit
        else:
            ok = dict(entry.belongs_to) == {own: f"{wanted.parent}.{to}" for own, to in wanted.columns.items()}
        right, wrong = right + ok, wrong + ([] if ok else [f"{name}: unit {entry.privacy_unit}"])
        for roles, columns in wanted.roles.items():
            for column in columns.split():
                ok = bool(found.get(column, {"hide"}) & {*roles.split("|")})
                right, wrong = right + ok, wrong + ([] if ok else [f"{name}.{column} is {found.get(column)}"])
    return right, wrong


def _as_roles(entry: Table) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for names, role in (
        (entry.artifacts, {"where", "sum"}),
        (entry.measures, {"sum"}),
        (entry.dimensions, {"group"}),
        (entry.coarsened, {"date"}),
        (entry.key, {"key", "hide"}),
    ):
        for name in names:
            found.setdefault(name, set()).update(role)
    return found
