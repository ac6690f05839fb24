"""A made-up database with the tables, types and shares of TPC-H: to install DuckDB's own generator takes a network."""

from pathlib import Path

import duckdb

_NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("INDIA", "INDONESIA", "JAPAN", "CHINA", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
_COLORS = ("almond", "antique", "blue", "green", "ivory", "lemon", "olive", "plum", "red", "rose")
_SIZES = ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
_FINISHES = ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
_METALS = ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
_PACKS = ("SM", "LG", "MED", "JUMBO", "WRAP")
_BOXES = ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")


def build(path: Path, scale: float) -> None:
    """Make the database. scale: 1 has 150,000 customers, of whom two thirds have orders."""
    people, bought, parts, sellers = (round(scale * of) for of in (150_000, 1_500_000, 200_000, 10_000))
    with duckdb.connect(path, config={"threads": 1}) as con:
        con.execute("select setseed(0.42)")
        _geography(con)
        con.execute(f"""
            create table supplier as select i + 1 as s_suppkey, format('Supplier#{{:09d}}', i + 1) as s_name,
              'address ' || i as s_address, {_whole(25)} as s_nationkey, '1' as s_phone,
              cast(random() * 11000 - 1000 as decimal(15, 2)) as s_acctbal, 'none' as s_comment
            from range({sellers}) as t (i)""")
        con.execute(f"""
            create table part as select i + 1 as p_partkey, {_one_of(_COLORS)} || ' ' || {_one_of(_COLORS)} as p_name,
              'Manufacturer#' || (1 + i % 5) as p_mfgr, 'Brand#' || (1 + i % 5) || (1 + i // 5 % 5) as p_brand,
              {_one_of(_SIZES)} || ' ' || {_one_of(_FINISHES)} || ' ' || {_one_of(_METALS)} as p_type,
              1 + {_whole(50)} as p_size, {_one_of(_PACKS)} || ' ' || {_one_of(_BOXES)} as p_container,
              cast(900 + i % 1000 as decimal(15, 2)) as p_retailprice, 'none' as p_comment
            from range({parts}) as t (i)""")
        con.execute(f"""
            create table partsupp as select i + 1 as ps_partkey, {_seller("i", "j", sellers)} as ps_suppkey,
              {_whole(9999)} as ps_availqty, cast(1 + random() * 999 as decimal(15, 2)) as ps_supplycost,
              'none' as ps_comment
            from range({parts}) as t (i), range(4) as u (j)""")
        con.execute(f"""
            create table customer as select i + 1 as c_custkey, format('Customer#{{:09d}}', i + 1) as c_name,
              'address ' || i as c_address, n as c_nationkey, (10 + n) || '-' || (100 + {_whole(900)}) as c_phone,
              cast(random() * 11000 - 1000 as decimal(15, 2)) as c_acctbal, {_one_of(_SEGMENTS)} as c_mktsegment,
              'comment ' || i as c_comment
            from (select i, {_whole(25)} as n from range({people}) as t (i))""")
        con.execute(f"""
            create table orders as select i // 8 * 32 + i % 8 + 1 as o_orderkey,
              c - cast(c % 3 = 0 as int) as o_custkey, 'F' as o_orderstatus, cast(0 as decimal(15, 2)) as o_totalprice,
              date '1992-01-01' + {_whole(2406)} as o_orderdate, {_one_of(_PRIORITIES)} as o_orderpriority,
              'Clerk#' || {_whole(1000)} as o_clerk, 0 as o_shippriority,
              case when random() < 0.01 then 'special packages requests' else 'regular deposits' end as o_comment
            from (select i, 1 + {_whole(people)} as c from range({bought}) as t (i))""")
        _items(con, parts, sellers)


def _geography(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table region (r_regionkey integer, r_name varchar, r_comment varchar)")
    con.execute("create table nation (n_nationkey integer, n_name varchar, n_regionkey integer, n_comment varchar)")
    for at, (region, nations) in enumerate(_NATIONS.items()):
        con.execute("insert into region values (?, ?, 'none')", [at, region])
        for place, nation in enumerate(nations):
            con.execute("insert into nation values (?, ?, ?, 'none')", [at * 5 + place, nation, at])


def _items(con: duckdb.DuckDBPyConnection, parts: int, sellers: int) -> None:
    """One to seven items of each order, and what follows from them for the order."""
    con.execute(f"""
        create table lineitem as select o_orderkey as l_orderkey, part + 1 as l_partkey,
          {_seller("part", "seller", sellers)} as l_suppkey, line as l_linenumber,
          cast(quantity as decimal(15, 2)) as l_quantity,
          cast(quantity * (900 + part % 1000) as decimal(15, 2)) as l_extendedprice,
          cast({_whole(11)} / 100 as decimal(15, 2)) as l_discount, cast({_whole(9)} / 100 as decimal(15, 2)) as l_tax,
          case when received > date '1995-06-17' then 'N' else {_one_of(("R", "A"))} end as l_returnflag,
          case when shipped > date '1995-06-17' then 'O' else 'F' end as l_linestatus, shipped as l_shipdate,
          o_orderdate + 30 + {_whole(61)} as l_commitdate, received as l_receiptdate,
          {_one_of(_INSTRUCTIONS)} as l_shipinstruct, {_one_of(_MODES)} as l_shipmode, 'none' as l_comment
        from (
          select *, shipped + 1 + {_whole(30)} as received
          from (
            select o_orderkey, o_orderdate, line, {_whole(parts)} as part, {_whole(4)} as seller,
              1 + {_whole(50)} as quantity, o_orderdate + 1 + {_whole(121)} as shipped
            from (select *, unnest(range(1, 2 + {_whole(7)})) as line from orders)
          )
        )""")
    con.execute("""
        update orders set o_totalprice = total, o_orderstatus = status
        from (
          select l_orderkey, sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)) as total,
            case when count(distinct l_linestatus) > 1 then 'P' else min(l_linestatus) end as status
          from lineitem group by l_orderkey
        )
        where l_orderkey = o_orderkey""")


def _whole(below: int) -> str:
    """SQL of a random whole number from 0 on."""
    return f"cast(floor(random() * {below}) as integer)"


def _one_of(words: tuple[str, ...]) -> str:
    """SQL of a random word."""
    listed = ", ".join(f"'{word}'" for word in words)
    return f"([{listed}])[1 + {_whole(len(words))}]"


def _seller(part: str, at: str, sellers: int) -> str:
    """SQL of one of the four sellers of a part."""
    return f"1 + ({part} + {at} * {sellers // 4}) % {sellers}"
