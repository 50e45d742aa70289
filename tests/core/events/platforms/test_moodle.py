"""Moodle's log report: headers in several languages, days without a year, people's pages, events of nobody."""

import json

import pytest

from tests.support.workbook import workbook
from understudy.errors import DataError, UsageError
from understudy.logs.inspect import inspect
from understudy.logs.reading import read_log

ENGLISH = "Time,User full name,Affected user,Event context,Component,Event name,Description,Origin,IP address"
GERMAN = "Zeit,Vollständiger Name,Betroffene/r Nutzer/in,Ereigniskontext,Komponente,Ereignisname,Beschreibung"


def exported(path, header, *rows, end="\n"):
    path.write_bytes((end.join((header, *rows)) + end).encode())
    return path


def rows_of(log):
    frame = log.to_polars()
    return list(zip(frame["learner"], frame["action"], strict=True))


def test_an_english_report(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        '"12 May, 09:44",Ada L,-,Quiz: First,Quiz,Course module viewed,seen,web,10.1.2.3',
        '"11 May, 09:44",Ada L,-,Course: C,System,Course viewed,seen,web,10.1.2.3',
        '"11 May, 08:00",Bob M,-,Course: C,System,Course viewed,seen,web,10.1.2.4',
        '"11 May, 07:00",-,-,Course: C,System,Something ran,seen,cli,',
        end="\r",
    )
    log = read_log(path)
    assert log.origin.format == "moodle"
    assert log.origin.guesses == ()
    assert log.outcome is None
    assert log.n_learners == 2
    assert rows_of(log) == [
        ("learner-1", "Course: C"),
        ("learner-1", "Quiz: First"),
        ("learner-2", "Course: C"),
    ]
    assert "1 rows that no person caused were dropped." in log.origin.notes


def test_a_german_report_and_the_page_of_a_person(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        GERMAN,
        '"3.10.2024, 09:44",Ada L,-,Nutzer/in: Bob M,System,Profil angezeigt,gesehen',
        '"4.10.2024, 09:44",Ada L,-,Test: Eins,Test,Kursmodul angezeigt,gesehen',
    )
    log = read_log(path, single_rows=True)
    assert [action for _, action in rows_of(log)] == ["Nutzer/in", "Test: Eins"]
    assert "Bob" not in str(log.actions)
    assert "1 row about a person's page: they are one action, without the name." in log.origin.notes
    assert {found.role for found in log.origin.identifiers} == {"learner", "not read"}


def test_a_year_begins_where_it_is_declared(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        '"2 Jan, 09:00",Ada L,-,January,Quiz,seen,x,web,',
        '"30 Dec, 09:00",Ada L,-,December,Quiz,seen,x,web,',
    )
    log = read_log(path)
    assert [action for _, action in rows_of(log)] == ["December", "January"]
    assert dict(inspect(log).facts())["from"] == "12-30 to 01-02 (month and day; no year is known)"
    calendar = read_log(path, first_day="2024-01-01")
    assert [action for _, action in rows_of(calendar)] == ["January", "December"]
    with pytest.raises(UsageError):
        read_log(path, first_day="1 January")


HEADERS = {
    "en": ENGLISH,
    "de": f"{GERMAN},Herkunft,IP-Adresse",
    "fr": "Heure,Nom complet de l’utilisateur,Utilisateur touché,Contexte de l’événement,Composant,"
    "Nom de l’événement,Description,Origine,Adresse IP",
    "es": "Hora,Nombre completo del usuario,Usuario afectado,Contexto del evento,Componente,Nombre evento,"
    "Descripción,Origen,Dirección IP",
    "it": "Data/Ora,Nome completo dell'utente,Utente coinvolto,Contesto dell'evento,Componente,Evento,"
    "Descrizione,Origine,Indirizzo IP",
    "nl": "Tijd,Volledige naam van de gebruiker,Over gebruiker,Gebeurteniscontext,Component,Gebeurtenisnaam,"
    "Beschrijving,Oorsprong,IP-adres",
    "pt": "Data/Hora,Nome completo do utilizador,Utilizador afetado,Contexto do evento,Componente,"
    "Nome do evento,Descrição,Origem,Endereço IP",
    "pt_br": "Hora,Nome completo,Usuário afetado,Contexto do Evento,Componente,Nome do evento,Descrição,"
    "Origem,endereço IP",
    "fi": "Aika,Käyttäjän koko nimi,Vaikutettu käyttäjä,Tapahtuman konteksti,Komponentti,Tapahtuman nimi,Kuvaus,"
    "Alkuperä,IP-osoite",
    "pl": "Czas,Pełna nazwa,Dotyczy użytkownika,Kontekst zdarzenia,Składnik,Nazwa zdarzenia,Opis,Źródło,Adres IP",
}
DAYS = {
    "en": "12 May",
    "it": "12 maggio 2024",
    "nl": "12 mei 2024",
    "pt": "12 de maio de 2024",
    "fi": "12. marraskuuta 2024",
    "pl": "12 maj 2024",
}
CELLS = [
    [
        "12 May, 09:44",
        "Ada L",
        "-",
        "Quiz: First",
        "Quiz",
        "Module viewed",
        "The user with id '7' saw",
        "web",
        "::1",
    ],
    [
        "11 May, 09:44",
        "Ada L",
        "-",
        "Course: C",
        "System",
        "Course viewed",
        "The user with id '7' saw",
        "web",
        "::1",
    ],
    [
        "11 May, 08:00",
        "Bob M",
        "-",
        "User: Ada L",
        "System",
        "Profile",
        "The user with id '8' saw",
        "web",
        "::1",
    ],
]
ACTIONS = [("learner-1", "Course: C"), ("learner-1", "Quiz: First"), ("learner-2", "User")]


@pytest.mark.parametrize("language", HEADERS)
def test_a_header_in_each_language(tmp_path, language):
    day = DAYS.get(language, "12.5.2024")
    path = exported(
        tmp_path / "logs.csv",
        HEADERS[language],
        f'"{day}, 09:44",Ada L,-,Quiz: B,Quiz,seen,x,web,10.1.2.3',
        f'"{day}, 08:44",Ada L,-,Quiz: A,Quiz,seen,x,web,10.1.2.3',
    )
    log = read_log(path)
    assert (log.origin.format, log.origin.guesses) == ("moodle", ())
    assert rows_of(log) == [("learner-1", "Quiz: A"), ("learner-1", "Quiz: B")]
    assert log.time[0].astype("datetime64[M]").item().month == (11 if language == "fi" else 5)
    names = HEADERS[language].split(",")
    identifying = {found.column: found.kind for found in log.origin.identifiers}
    assert identifying[names[8]] == "IP address"
    assert identifying[names[6]] == "learner id"
    assert identifying[names[2]] == "name"


def test_a_workbook_is_recognised_by_its_header(tmp_path):
    path = tmp_path / "logs.xlsx"
    path.write_bytes(workbook([ENGLISH.split(","), *CELLS]))
    log = read_log(path)
    assert (log.origin.format, log.origin.guesses) == ("moodle", ())
    assert rows_of(log) == ACTIONS
    assert rows_of(read_log(path, format="moodle", sheet="1")) == ACTIONS


@pytest.mark.parametrize("shape", ["arrays", "arrays of a site", "objects in an array", "objects"])
@pytest.mark.parametrize("indent", [None, 1])
def test_reports_as_json(tmp_path, shape, indent):
    objects = [dict(zip(ENGLISH.split(","), cells, strict=True)) for cells in CELLS]
    content = {
        "arrays": [CELLS],
        "arrays of a site": [[["C", *cells] for cells in CELLS]],
        "objects in an array": [objects],
        "objects": objects,
    }[shape]
    path = tmp_path / "logs.json"
    path.write_text(json.dumps(content, indent=indent))
    log = read_log(path)
    assert (log.origin.format, log.origin.guesses) == ("moodle", ())
    assert rows_of(log) == ACTIONS


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([[[1, 2, 3]]], "which have 9 cells"),
        ([[CELLS[0], CELLS[1][:8]]], "record 2 has another form"),
        ([[CELLS[0], {"Time": 1}]], "record 2 has another form"),
    ],
)
def test_json_that_is_not_moodles(tmp_path, content, told):
    path = tmp_path / "logs.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=told):
        read_log(path)


def test_a_description_as_the_action_names_nobody(tmp_path):
    rows = [
        ("7", "The user with id '7' viewed the 'quiz' activity with course module id '9'."),
        ("8", "The user with id '8' viewed the 'quiz' activity with course module id '9'."),
        ("8", "The user with id '8' added the user with id '7' to the group with id '3'."),
        ("9", "The user with id '9' sent mail to bob@school.example."),
    ]
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        *(
            f'"11 May, 09:4{n}",Name {who},-,Course: C,System,E,{text},web,'
            for n, (who, text) in enumerate(rows)
        ),
    )
    log = read_log(path, action="Description")
    assert log.actions == (
        "The user with id '(person)' added the user with id '(person)' to the group with id '3'.",
        "The user with id '(person)' sent mail to (person).",
        "The user with id '(person)' viewed the 'quiz' activity with course module id '9'.",
    )
    log.origin.refuse_people("the synthetic data", log.actions)


def test_rows_out_of_order_are_counted(tmp_path):
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        '"12 May, 09:44",Ada L,-,C,Quiz,seen,x,web,',
        '"11 May, 07:44",Bob M,-,A,Quiz,seen,x,web,',
        '"11 May, 09:44",Ada L,-,B,Quiz,seen,x,web,',
        '"11 May, 08:44",Bob M,-,B,Quiz,seen,x,web,',
        '"11 May, 08:44",Ada L,-,A,Quiz,seen,x,web,',
    )
    log = read_log(path)
    assert (
        "Out of order in the file: 2 rows, earlier than the row before of the same learner."
        in log.origin.notes
    )
    assert [action for _, action in rows_of(log)] == ["A", "B", "C", "A", "B"]
    as_they_are = read_log(path, in_order=True)
    assert [action for _, action in rows_of(as_they_are)] == ["C", "B", "A", "A", "B"]


def test_rows_of_one_minute_in_a_report_with_the_newest_first(tmp_path):
    """Ada's rows run backwards and are turned round; Bob's, the other way round, stay as they are."""
    path = exported(
        tmp_path / "logs.csv",
        ENGLISH,
        '"12 May, 09:44",Ada L,-,D,Quiz,seen,x,web,',
        '"11 May, 07:44",Bob M,-,A,Quiz,seen,x,web,',
        '"11 May, 09:44",Ada L,-,C,Quiz,seen,x,web,',
        '"11 May, 07:44",Bob M,-,B,Quiz,seen,x,web,',
        '"11 May, 09:44",Ada L,-,B,Quiz,seen,x,web,',
        '"11 May, 09:44",Ada L,-,A,Quiz,seen,x,web,',
        '"12 May, 07:44",Bob M,-,C,Quiz,seen,x,web,',
    )
    assert [action for _, action in rows_of(read_log(path))] == ["A", "B", "C", "D", "A", "B", "C"]
