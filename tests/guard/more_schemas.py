"""More databases in shapes that people know: questions and answers, intensive care, a bicycle maker with schemas."""

from collections.abc import Mapping

from real_schemas import LEFT_OUT, PUBLIC, Of, People, Statements, Truth


def questions(people: int = 3000) -> Statements:
    """As the dumps of Stack Overflow: no keys are declared, moments have a time zone, and a count is named votes."""

    def moment(tag: str) -> str:
        return f"timestamptz '2015-01-01 00:00:00+00' + interval (kr(i, '{tag}', 1440000)) minute"

    posts = 4 * people
    return [
        "create table users as select i + 1 as Id, 1 + skewed(i, 'r', 900) as Reputation,"
        f" {moment('c')} as CreationDate,"
        " 'user' || i as DisplayName, 'about ' || md5('a' || i) as AboutMe, skewed(i, 'v', 500) as Views,"
        f" skewed(i, 'u', 40) as UpVotes from range({people}) t(i)",
        f"create table posts as select i + 1 as Id, 1 + kr(i, 't', 2) as PostTypeId, {moment('p')} as CreationDate,"
        f" skewed(i, 's', 50) as Score, 1 + skewed(i, 'o', {people}) as OwnerUserId, 'title ' || i as Title,"
        " 'text ' || md5('b' || i) as Body, pick(i, 'g', ['python', 'sql', 'rust', 'java']) as Tag,"
        f" skewed(i, 'a', 9) as AnswerCount from range({posts}) t(i)",
        f"create table comments as select i + 1 as Id, 1 + skewed(i, 'p', {posts}) as PostId, skewed(i, 's',"
        " 6) as Score,"
        f" 'comment ' || md5('t' || i) as Text, {moment('cc')} as CreationDate, 1 + skewed(i, 'u', {people}) as UserId"
        f" from range({5 * people}) t(i)",
        f"create table votes as select i + 1 as Id, 1 + kr(i, 'p', {posts}) as PostId, 1 + kr(i, 't', 3) as VoteTypeId,"
        f" {moment('v')} as CreationDate from range({6 * people}) t(i)",
        "create table post_types as select * from (values (1, 'Question'), (2, 'Answer')) t(Id, Name)",
        "create table vote_types as select * from (values (1, 'Accepted'), (2, 'Up'), (3, 'Down')) t(Id, Name)",
    ]


QUESTIONS: Truth = {
    "users": People(
        "Id", {"hide": "DisplayName AboutMe", "date": "CreationDate", "where|sum": "Reputation Views UpVotes"}
    ),
    "posts": People(
        "OwnerUserId",
        {
            "hide|key": "Id",
            "hide": "Title Body",
            "date": "CreationDate",
            "where": "PostTypeId Tag AnswerCount",
            "where|sum": "Score",
        },
    ),
    "comments": People(
        "UserId", {"hide|key": "Id", "hide": "PostId Text", "date": "CreationDate", "where|sum": "Score"}
    ),
    "votes": Of("posts", {"PostId": "Id"}, {"hide|key": "Id", "where": "VoteTypeId", "date": "CreationDate"}),
    "post_types": PUBLIC,
    "vote_types": PUBLIC,
}


def intensive_care(people: int = 2500) -> Statements:
    """As MIMIC: patients, their stays, what was measured; and caregivers, who are people of another kind."""
    stays, notes = int(2.4 * people), 3 * people

    def moment(tag: str) -> str:
        return f"timestamp '2015-01-01' + interval (kr(i, '{tag}', 1440000)) minute"

    return [
        "create table patients (subject_id integer primary key, gender varchar, dob date, dod date,"
        " anchor_age integer)",
        "insert into patients select i + 1, pick(i, 'g', ['F', 'M']), date '1930-01-01' + kr(i, 'd', 25000)::integer,"
        f" null, 18 + kr(i, 'a', 70) from range({people}) t(i)",
        "create table admissions (hadm_id integer primary key, subject_id integer references patients (subject_id),"
        " admittime timestamp, admission_type varchar, insurance varchar, ethnicity varchar, diagnosis varchar,"
        " hospital_expire_flag boolean)",
        f"insert into admissions select 100000 + i, 1 + kr(i, 'p', {people}), {moment('t')},"
        " pick(i, 'y', ['EMERGENCY', 'ELECTIVE', 'URGENT']), pick(i, 'i', ['Medicare', 'Private', 'Medicaid']),"
        " pick(i, 'e', ['WHITE', 'BLACK', 'ASIAN', 'HISPANIC']), 'DIAGNOSIS ' || kr(i, 'dx', 3000), kr(i, 'h', 9) = 0"
        f" from range({stays}) t(i)",
        "create table d_labitems (itemid integer primary key, label varchar, fluid varchar)",
        "insert into d_labitems select 50000 + i, 'lab ' || i, pick(i, 'f', ['Blood', 'Urine']) from range(30) t(i)",
        "create table labevents (row_id integer primary key, hadm_id integer references admissions (hadm_id),"
        " itemid integer references d_labitems (itemid), charttime timestamp, valuenum double, flag varchar)",
        f"insert into labevents select i, 100000 + kr(i, 'h', {stays}), 50000 + skewed(i, 'l', 30), {moment('c')},"
        " kr(i, 'v', 1000) / 10, pick(i, 'f', ['normal', 'normal', 'abnormal'])"
        f" from range({10 * people}) t(i)",
        "create table caregivers (cgid integer primary key, label varchar, description varchar)",
        "insert into caregivers select i + 1, pick(i, 'l', ['RN', 'MD', 'RT']), 'caregiver ' || i from range(200) t(i)",
        "create table noteevents (row_id integer primary key, subject_id integer references patients (subject_id),"
        " cgid integer references caregivers (cgid), category varchar, text varchar)",
        f"insert into noteevents select i, 1 + kr(i, 'p', {people}), 1 + kr(i, 'c', 200),"
        f" pick(i, 'n', ['Nursing', 'Radiology', 'ECG']), 'note ' || md5('n' || i) from range({notes}) t(i)",
    ]


INTENSIVE_CARE: Truth = {
    "patients": People("subject_id", {"hide": "dod", "where": "gender", "where|sum": "anchor_age", "date|hide": "dob"}),
    "admissions": People(
        "subject_id",
        {
            "hide|key": "hadm_id",
            "hide": "diagnosis",
            "date": "admittime",
            "where": "admission_type insurance ethnicity hospital_expire_flag",
        },
    ),
    "labevents": Of(
        "admissions",
        {"hadm_id": "hadm_id"},
        {"hide|key": "row_id", "where": "itemid flag", "where|sum": "valuenum", "date": "charttime"},
    ),
    "noteevents": People("subject_id", {"hide|key": "row_id", "hide": "cgid text", "where": "category"}),
    "d_labitems": PUBLIC,
    "caregivers": LEFT_OUT,
}


def bicycles(people: int = 4000) -> Statements:
    """As AdventureWorks: names in capitals and in schemas, people in one table and customers in another."""
    orders = int(2.5 * people)
    return [
        "create schema Person; create schema Sales; create schema HumanResources; create schema Production",
        "create table Person.Person as select i as BusinessEntityID, pick(i, 't', ['IN', 'EM', 'SC']) as PersonType,"
        " 'First' || kr(i, 'f', 500) as FirstName, 'Last' || kr(i, 'l', 800) as LastName,"
        " md5('r' || i)::uuid as rowguid"
        f" from range(1, {people + 1}) t(i)",
        "create table Person.EmailAddress as select i as BusinessEntityID, 'p' || i || '@x.org' as EmailAddress"
        f" from range(1, {people + 1}) t(i)",
        "create table Sales.Customer as select i as CustomerID, i as PersonID, 1 + kr(i, 't', 10) as TerritoryID,"
        f" 'AW' || lpad(i::varchar, 8, '0') as AccountNumber from range(1, {people + 1}) t(i)",
        "create table Sales.SalesOrderHeader as select i as SalesOrderID, timestamp '2011-05-31' + interval"
        f" (kr(i, 'd', 1100)) day as OrderDate, 1 + kr(i, 'c', {people}) as CustomerID,"
        " 1 + kr(i, 'p', 17) as SalesPersonID, 1 + kr(i, 't', 10) as TerritoryID, kr(i, 'o', 2) = 0 as OnlineOrderFlag,"
        f" 20 + kr(i, 'a', 300000) / 100 as TotalDue from range(1, {orders + 1}) t(i)",
        "create table Sales.SalesOrderDetail as select i as SalesOrderDetailID, 1 + kr(i, 'o',"
        f" {orders}) as SalesOrderID,"
        " 1 + kr(i, 'q', 12) as OrderQty, 700 + skewed(i, 'p', 250) as ProductID, 2 + kr(i, 'u',"
        " 90000) / 100 as UnitPrice"
        f" from range({3 * orders}) t(i)",
        "create table Sales.SalesTerritory as select i as TerritoryID, 'T' || i as Name from range(1, 11) t(i)",
        "create table Production.Product as select 700 + i as ProductID, 'Product ' || i as Name,"
        " pick(i, 'c', ['Red', 'Black', 'Blue']) as Color, 5 + i * 3.5 as ListPrice from range(250) t(i)",
        "create table HumanResources.Employee as select i as BusinessEntityID, 'NID' || i as NationalIDNumber,"
        " pick(i, 'j', ['Tech', 'Sales', 'Buyer']) as JobTitle, date '1960-01-01' + kr(i, 'b',"
        " 9000)::integer as BirthDate"
        " from range(1, 291) t(i)",
    ]


BICYCLES: Truth = {
    "Sales.Customer": People("CustomerID", {"hide": "PersonID AccountNumber", "where": "TerritoryID"}),
    "Sales.SalesOrderHeader": People(
        "CustomerID",
        {
            "hide|key": "SalesOrderID",
            "hide": "SalesPersonID",
            "date": "OrderDate",
            "where": "TerritoryID OnlineOrderFlag",
            "where|sum": "TotalDue",
        },
    ),
    "Sales.SalesOrderDetail": Of(
        "Sales.SalesOrderHeader",
        {"SalesOrderID": "SalesOrderID"},
        {"hide|key": "SalesOrderDetailID", "where": "OrderQty ProductID", "where|sum": "UnitPrice"},
    ),
    "Person.Person": LEFT_OUT,
    "Person.EmailAddress": LEFT_OUT,
    "HumanResources.Employee": LEFT_OUT,
    "Sales.SalesTerritory": PUBLIC,
    "Production.Product": PUBLIC,
}

TRUTHS: Mapping[str, Truth] = {
    "questions": QUESTIONS,
    "intensive_care": INTENSIVE_CARE,
    "bicycles": BICYCLES,
}
