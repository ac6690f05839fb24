# ruff: noqa: E501 - statements as they are written elsewhere
"""Schemas that no rule of `init guard` was written for, with what is true of them: a clinic, a service with events, a
school, a bank, a shop of another make. All is made up."""

from real_schemas import EITHER, LEFT_OUT, PUBLIC, Of, People, Statements, Truth


def clinic(people: int = 2500) -> Statements:
    return [
        "create type blood as enum ('A', 'B', 'AB', '0')",
        "create table departments (dept_code varchar primary key, dept_name varchar, floor integer)",
        "insert into departments select 'D' || i, 'Dept ' || i, i % 4 from range(8) t(i)",
        "create table physicians (physician_id integer primary key, full_name varchar, specialty varchar,"
        " dept_code varchar references departments (dept_code), pager varchar)",
        "insert into physicians select i, 'Dr ' || i, pick(i, 's', ['cardiology', 'surgery', 'oncology']), 'D' || i % 8,"
        " '' || i from range(1, 41) t(i)",
        "create table icd_codes (icd varchar primary key, title varchar, chapter varchar)",
        "insert into icd_codes select 'I' || i, 'Disease ' || i, 'Ch' || i % 9 from range(120) t(i)",
        "create table patients (patient_uuid uuid primary key, mrn varchar unique, given_name varchar, family_name varchar,"
        " dob date, gender varchar, blood_type blood, marital_status varchar, insurance_plan varchar, home_phone varchar,"
        " email_address varchar, street_address varchar, city varchar, zip varchar, height_cm double, weight_kg double,"
        " smoker boolean, deceased_at timestamptz, registered_at timestamptz)",
        "insert into patients select md5('p' || i)::uuid, 'MRN' || i, 'G' || kr(i, 'g', 400), 'F' || kr(i, 'f', 900),"
        " date '1930-01-01' + kr(i, 'd', 30000)::integer, pick(i, 'x', ['female', 'male', 'female', 'male', 'diverse']),"
        " pick(i, 'b', ['A', 'A', 'B', '0', '0', 'AB'])::blood, pick(i, 'm', ['single', 'married', 'widowed']),"
        " pick(i, 'i', ['public', 'public', 'private']), '0' || kr(i, 'p', 999999999), 'e' || i || '@x.org',"
        " kr(i, 's', 99) || ' Elm St', 'City ' || skewed(i, 'c', 20), '' || 1000 + kr(i, 'z', 2000),"
        " 150 + kr(i, 'h', 450) / 10, 45 + kr(i, 'w', 700) / 10, kr(i, 'sm', 5) = 0, null,"
        f" timestamptz '2020-01-01 00:00:00+00' + interval (kr(i, 'r', 1500)) day from range({people}) t(i)",
        "create table encounters (encounter_id bigint primary key, patient_uuid uuid not null references patients"
        " (patient_uuid), attending_physician_id integer references physicians (physician_id),"
        " dept_code varchar references departments (dept_code), encounter_type varchar, admitted_on date,"
        " discharged_on date, length_of_stay integer, triage_level smallint, total_charge decimal(12,2),"
        " chief_complaint varchar, readmitted boolean)",
        "insert into encounters select i, md5('p' || kr(i, 'p', " + str(people) + "))::uuid, 1 + kr(i, 'd', 40),"
        " 'D' || kr(i, 'dep', 8), pick(i, 't', ['inpatient', 'outpatient', 'emergency']),"
        " date '2022-01-01' + kr(i, 'a', 1000)::integer, date '2022-01-01' + (kr(i, 'a', 1000) + kr(i, 'l', 9))::integer,"
        " kr(i, 'l', 9), 1 + kr(i, 'tr', 5), 50 + kr(i, 'c', 900000) / 100, 'complains of ' || md5('c' || i),"
        f" kr(i, 're', 9) = 0 from range({people * 4}) t(i)",
        "create table diagnoses (encounter_id bigint not null references encounters (encounter_id), seq smallint not null,"
        " icd varchar not null references icd_codes (icd), primary_dx boolean, primary key (encounter_id, seq))",
        "insert into diagnoses select encounter_id, n, 'I' || skewed(encounter_id * 5 + n, 'i', 120), n = 1"
        " from encounters, range(1, 4) u(n) where n <= 1 + encounter_id % 3",
        "create table lab_results (result_id uuid primary key, encounter_id bigint references encounters (encounter_id),"
        " test_name varchar, value double, unit varchar, abnormal_flag varchar, taken_at timestamp)",
        "insert into lab_results select md5('l' || i)::uuid, kr(i, 'e', " + str(4 * people) + "),"
        " pick(i, 't', ['glucose', 'hdl', 'ldl', 'crp']), kr(i, 'v', 3000) / 10, 'mg/dl',"
        " pick(i, 'f', ['N', 'N', 'N', 'H', 'L']), timestamp '2022-01-01' + interval (kr(i, 'd', 1440000)) minute"
        f" from range({8 * people}) t(i)",
    ]


CLINIC: Truth = {
    "patients": People(
        "patient_uuid",
        {
            "hide": "mrn given_name family_name home_phone email_address street_address zip deceased_at",
            "date|hide": "dob registered_at",  # TIMESTAMPTZ, as far as it is told apart
            "where": "gender blood_type marital_status insurance_plan city smoker",
            "where|sum": "height_cm weight_kg",
        },
    ),
    "encounters": People(
        "patient_uuid",
        {
            "hide|key": "encounter_id",
            "hide": "attending_physician_id chief_complaint",
            "where": "dept_code encounter_type length_of_stay triage_level readmitted",
            "date": "admitted_on discharged_on",
            "where|sum": "total_charge",
        },
    ),
    "diagnoses": Of("encounters", {"encounter_id": "encounter_id"}, {"where|hide": "seq", "where": "icd primary_dx"}),
    "lab_results": Of(
        "encounters",
        {"encounter_id": "encounter_id"},
        {
            "hide|key": "result_id",
            "where": "test_name abnormal_flag",
            "where|hide": "unit",
            "where|sum": "value",
            "date": "taken_at",
        },
    ),
    "physicians": LEFT_OUT,
    "departments": PUBLIC,
    "icd_codes": PUBLIC,
}


def events(people: int = 4000) -> Statements:
    return [
        "create table plans (plan_id varchar primary key, plan_name varchar, monthly_price decimal(8,2))",
        "insert into plans select p, p, 10 from (values ('free'), ('pro'), ('team')) t(p)",
        "create table accounts (account_id bigint primary key, company_name varchar, plan_id varchar references plans,"
        " billing_email varchar, country_code varchar, created_at timestamp, seats integer)",
        "insert into accounts select i, 'Acme ' || i, pick(i, 'p', ['free', 'pro', 'team']), 'b' || i || '@x.io',"
        " pick(i, 'c', ['US', 'DE', 'FR', 'GB', 'IN']), timestamp '2021-01-01' + interval (kr(i, 'd', 900)) day,"
        f" 1 + kr(i, 's', 40) from range({people // 4}) t(i)",
        "create table users (user_id bigint primary key, account_id bigint references accounts (account_id),"
        " display_name varchar, email varchar, role varchar, locale varchar, signup_source varchar, is_active boolean,"
        " last_login_ip varchar, avatar_url varchar, created_at timestamp, nps_score smallint, preferences json)",
        f"insert into users select i, kr(i, 'a', {people // 4}), 'N' || kr(i, 'n', 999), 'u' || i || '@x.io',"
        " pick(i, 'r', ['admin', 'member', 'member', 'viewer']), pick(i, 'l', ['en', 'en', 'de', 'fr']),"
        " pick(i, 's', ['ads', 'organic', 'invite', 'partner']), kr(i, 'x', 4) > 0, '10.0.0.' || i % 250,"
        " 'http://a/' || i, timestamp '2022-01-01' + interval (kr(i, 'c', 800)) day,"
        f" case when i % 3 = 0 then kr(i, 'nps', 11) end, '{{}}'::json from range({people}) t(i)",
        "create table events (event_id uuid, user_id bigint, session_id varchar, event_type varchar, page_path varchar,"
        " device_type varchar, browser varchar, occurred_at timestamp, duration_ms integer, properties json)",
        f"insert into events select md5('e' || i)::uuid, skewed(i // 6, 'u', {people}), md5('s' || i // 6),"
        " pick(i, 't', ['page_view', 'page_view', 'click', 'search', 'export', 'login']),"
        " '/p/' || skewed(i, 'pp', 30), pick(i, 'd', ['desktop', 'mobile', 'tablet']),"
        " pick(i, 'b', ['chrome', 'safari', 'firefox']), timestamp '2024-01-01' + interval (kr(i, 'o', 129600)) minute,"
        f" kr(i, 'ms', 60000), '{{}}'::json from range({people * 25}) t(i)",
        "create table subscriptions (id bigint primary key, user_id bigint references users (user_id), plan_id varchar,"
        " status varchar, started_on date, cancelled_on date, mrr decimal(10,2), trial boolean)",
        "insert into subscriptions select i, i, pick(i, 'p', ['free', 'pro', 'team']),"
        " pick(i, 's', ['active', 'active', 'cancelled', 'past_due']), date '2022-01-01' + kr(i, 'd', 800)::integer,"
        " case when i % 4 = 0 then date '2024-06-01' + kr(i, 'c', 90)::integer end,"
        f" kr(i, 'm', 9000) / 100, i % 5 = 0 from range({people}) t(i)",
        "create table support_tickets (ticket_no integer primary key, requester_id bigint references users (user_id),"
        " assignee_id bigint, subject varchar, body varchar, priority varchar, satisfaction smallint, opened_at timestamp)",
        f"insert into support_tickets select i, kr(i, 'u', {people}), kr(i, 'as', 12), 'Help with ' || i,"
        " 'text ' || md5('b' || i), pick(i, 'p', ['low', 'normal', 'high']), 1 + kr(i, 's', 5),"
        f" timestamp '2024-01-01' + interval (kr(i, 'o', 300)) day from range({people * 2}) t(i)",
        "create table ticket_tags (ticket_no integer references support_tickets (ticket_no), tag varchar)",
        "insert into ticket_tags select ticket_no, pick(ticket_no + n, 'g', ['billing', 'bug', 'howto', 'sso'])"
        " from support_tickets, range(2) u(n)",
    ]


EVENTS: Truth = {
    "users": People(
        "user_id",
        {
            "hide": "account_id display_name email last_login_ip avatar_url preferences",
            "where": "role locale signup_source is_active nps_score",
            "date": "created_at",
        },
    ),
    "events": People(
        "user_id",
        {
            "hide|key": "event_id",
            "hide": "session_id properties",
            "where": "event_type device_type browser",
            "where|hide": "page_path",
            "where|sum": "duration_ms",
            "date": "occurred_at",
        },
    ),
    "subscriptions": People(
        "user_id",
        {
            "hide|key": "id",
            "where": "plan_id status trial",
            "date": "started_on cancelled_on",
            "where|sum": "mrr",
        },
    ),
    "support_tickets": People(
        "requester_id",
        {
            "hide|key": "ticket_no",
            "hide": "subject body",
            "where|hide": "assignee_id",
            "where": "priority satisfaction",
            "date": "opened_at",
        },
    ),
    "ticket_tags": Of("support_tickets", {"ticket_no": "ticket_no"}, {"where": "tag"}),
    "accounts": LEFT_OUT,
    "plans": PUBLIC,
}


def school(people: int = 1800) -> Statements:
    return [
        "create table tblSubject (SubjectCode varchar primary key, SubjectName varchar, Department varchar)",
        "insert into tblSubject select 'S' || i, 'Subject ' || i, 'Dep ' || i % 4 from range(14) t(i)",
        "create table tblTeacher (TeacherNo integer primary key, Surname varchar, Forename varchar, HireDate date)",
        "insert into tblTeacher select i, 'S' || i, 'F' || i, date '2010-01-01' + i::integer from range(1, 71) t(i)",
        "create table tblClass (ClassID integer primary key, SubjectCode varchar, TeacherNo integer, Room varchar,"
        " SchoolYear integer)",
        "insert into tblClass select i, 'S' || i % 14, 1 + i % 70, 'R' || i % 30, 2021 + i % 4 from range(1, 141) t(i)",
        "create table tblStudent (StudentNo integer primary key, Surname varchar, Forename varchar, DateOfBirth date,"
        " Sex varchar, YearGroup integer, House varchar, FreeMeals boolean, SEN varchar, GuardianPhone varchar,"
        " PostCode varchar, Nationality varchar, EntryDate date, Notes varchar)",
        "insert into tblStudent select 1000 + i, 'S' || kr(i, 's', 900), 'F' || kr(i, 'f', 300),"
        " date '2006-09-01' + kr(i, 'd', 2500)::integer, pick(i, 'x', ['F', 'M']), 7 + kr(i, 'y', 7),"
        " pick(i, 'h', ['Red', 'Blue', 'Green', 'Gold']), kr(i, 'm', 5) = 0,"
        " case when i % 6 = 0 then pick(i, 'se', ['K', 'E']) end, '07' || kr(i, 'p', 99999999),"
        " 'AB' || kr(i, 'z', 4000), pick(i, 'n', ['British', 'British', 'British', 'Irish', 'Polish', 'Indian']),"
        " date '2018-09-01' + (365 * kr(i, 'e', 6))::integer, case when i % 9 = 0 then 'note ' || i end"
        f" from range({people}) t(i)",
        "create table tblEnrolment (StudentNo integer, ClassID integer, TargetGrade varchar, Effort smallint,"
        " primary key (StudentNo, ClassID))",
        "insert into tblEnrolment select 1000 + i, c, pick(i + c, 't', ['A', 'B', 'C', 'D']), 1 + kr(i * c, 'e', 5)"
        f" from range({people}) t(i), range(1, 141) u(c) where kr(i * 141 + c, 'in', 20) = 0",
        "create table tblMark (MarkID integer primary key, StudentNo integer, ClassID integer, AssessmentType varchar,"
        " Score decimal(5,2), MaxScore integer, MarkedBy integer, MarkDate date)",
        f"insert into tblMark select i, 1000 + kr(i, 's', {people}), 1 + kr(i, 'c', 140),"
        " pick(i, 'a', ['exam', 'homework', 'project']), kr(i, 'sc', 10000) / 100, 100, 1 + kr(i, 'b', 70),"
        f" date '2024-01-08' + kr(i, 'd', 150)::integer from range({people * 10}) t(i)",
        "create table tblAttendance (StudentNo integer, AttDate date, Session varchar, Code varchar, MinutesLate integer)",
        f"insert into tblAttendance select 1000 + i, date '2024-01-08' + d::integer, s, pick(i * d, 'c', ['/', '/', '/', '/', 'L', 'N']),"
        f" case when kr(i * d, 'c', 9) = 0 then kr(i * d, 'm', 30) end from range({people}) t(i), range(40) u(d),"
        " (values ('AM'), ('PM')) v(s)",
    ]


SCHOOL: Truth = {
    "tblStudent": People(
        "StudentNo",
        {
            "hide": "Surname Forename GuardianPhone PostCode Notes",
            "date|hide": "DateOfBirth",
            "where": "Sex YearGroup House FreeMeals SEN Nationality",
            "date": "EntryDate",
        },
    ),
    "tblEnrolment": People("StudentNo", {"where": "ClassID TargetGrade Effort"}),
    "tblMark": People(
        "StudentNo",
        {
            "hide|key": "MarkID",
            "hide": "MarkedBy",
            "where": "ClassID AssessmentType",
            "where|sum": "Score",
            "where|sum|hide": "MaxScore",
            "date": "MarkDate",
        },
    ),
    "tblAttendance": People("StudentNo", {"where": "Session Code", "date": "AttDate", "where|sum": "MinutesLate"}),
    "tblTeacher": LEFT_OUT,
    "tblClass": EITHER,
    "tblSubject": PUBLIC,
}


def bank(people: int = 3000) -> Statements:
    return [
        "create table branch (branch_nr integer primary key, branch_city varchar, region varchar)",
        "insert into branch select i, 'C' || i, 'R' || i % 5 from range(1, 31) t(i)",
        "create table client (client_id integer primary key, birth_number varchar, sex varchar, segment varchar,"
        " branch_nr integer, annual_income double, risk_score double, opened date)",
        "insert into client select i, '' || 700000 + kr(i, 'b', 99999), pick(i, 'x', ['f', 'm']),"
        " pick(i, 's', ['retail', 'private', 'student']), 1 + kr(i, 'br', 30), 9000 + kr(i, 'in', 9000000) / 100,"
        f" kr(i, 'ri', 1000) / 1000, date '2015-01-01' + kr(i, 'o', 3000)::integer from range(1, {people + 1}) t(i)",
        "create table account (account_id integer primary key, client_id integer, account_type varchar, iban varchar,"
        " currency varchar, balance decimal(14,2), overdraft boolean)",
        f"insert into account select i, 1 + kr(i, 'c', {people}), pick(i, 't', ['giro', 'savings']), 'AT' || i,"
        " pick(i, 'cu', ['EUR', 'EUR', 'USD']), kr(i, 'b', 9000000) / 100, kr(i, 'o', 7) = 0"
        f" from range(1, {people * 3 // 2}) t(i)",
        "create table trans (trans_id bigint primary key, account_id integer, booked timestamp, kind varchar,"
        " amount decimal(12,2), counterparty varchar, merchant_category varchar)",
        f"insert into trans select i, 1 + kr(i, 'a', {people * 3 // 2 - 1}), timestamp '2023-01-01' + interval (kr(i, 'd', 525600)) minute,"
        " pick(i, 'k', ['credit', 'debit', 'debit']), kr(i, 'm', 100000) / 100, 'X' || md5('c' || i),"
        f" pick(i, 'mc', ['food', 'travel', 'rent', 'other']) from range({people * 20}) t(i)",
    ]


BANK: Truth = {
    "client": People(
        "client_id",
        {
            "hide": "birth_number",
            "where": "sex segment branch_nr",
            "where|sum": "annual_income risk_score",
            "date": "opened",
        },
    ),
    "account": People(
        "client_id",
        {
            "hide|key": "account_id",
            "hide": "iban",
            "where": "account_type currency overdraft",
            "where|sum": "balance",
        },
    ),
    "trans": Of(
        "account",
        {"account_id": "account_id"},
        {
            "hide|key": "trans_id",
            "date": "booked",
            "where": "kind merchant_category",
            "where|sum": "amount",
            "hide": "counterparty",
        },
    ),
    "branch": PUBLIC,
}


def jaffle_new(people: int = 900) -> Statements:
    return [
        "create table raw_customers (id varchar, name varchar)",
        f"insert into raw_customers select md5('c' || i), 'N ' || i from range({people}) t(i)",
        "create table raw_stores (id varchar, name varchar, opened_at timestamp, tax_rate double)",
        "insert into raw_stores select md5('s' || i), 'Store ' || i, timestamp '2016-09-01', 0.06 from range(6) t(i)",
        "create table raw_products (sku varchar, name varchar, type varchar, price integer, description varchar)",
        "insert into raw_products select 'JAF-00' || i, 'P' || i, 'jaffle', 900, 'd' from range(10) t(i)",
        "create table raw_supplies (id varchar, name varchar, cost integer, perishable boolean, sku varchar)",
        "insert into raw_supplies select 'SUP-00' || i, 'x', 7, true, 'JAF-00' || i % 10 from range(60) t(i)",
        "create table raw_orders (id varchar, customer varchar, ordered_at timestamp, store_id varchar, subtotal integer,"
        " tax_paid integer, order_total integer)",
        f"insert into raw_orders select md5('o' || i), md5('c' || kr(i, 'c', {people})), timestamp '2016-09-01' +"
        " interval (kr(i, 't', 500000)) minute, md5('s' || skewed(i, 's', 6)), s, s // 20, s + s // 20"
        f" from (select i, 300 + 100 * kr(i, 'p', 25) as s from range({people * 12}) t(i))",
        "create table raw_items (id varchar, order_id varchar, sku varchar)",
        "insert into raw_items select md5(id || n), id, 'JAF-00' || skewed(hash(id) % 100000 + n, 'k', 10)"
        " from raw_orders, range(2) u(n)",
    ]


JAFFLE_NEW: Truth = {
    "raw_customers": People("id", {"hide": "name"}),
    "raw_orders": People(
        "customer",
        {
            "hide|key": "id",
            "date": "ordered_at",
            "where": "store_id",
            "where|sum": "subtotal tax_paid order_total",
        },
    ),
    "raw_items": Of("raw_orders", {"order_id": "id"}, {"hide|key": "id", "where": "sku"}),
    "raw_stores": PUBLIC,
    "raw_products": PUBLIC,
    "raw_supplies": PUBLIC,
}
TRUTHS = {"clinic": CLINIC, "events": EVENTS, "school": SCHOOL, "bank": BANK, "jaffle_new": JAFFLE_NEW}
