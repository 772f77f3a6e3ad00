from pathlib import Path

import pytest

from gistpoint.tui.user_themes import read_themes


def folder(root: Path, **files: str) -> Path:
    (root / "themes").mkdir()
    for name, text in files.items():
        (root / "themes" / f"{name}.toml").write_text(text)
    return root


def test_a_theme_is_named_by_its_file_or_itself(tmp_path: Path) -> None:
    config = folder(
        tmp_path,
        fjord='primary = "#88C0D0"\ndark = true\ntext_alpha = 0.9\n[variables]\nborder = "teal"\n',
        other='name = "paper"\nprimary = "navy"\nbackground = "white"\ndark = false\n',
    )
    themes, problems = read_themes(config)
    assert problems == []
    assert {name: theme.dark for name, theme in themes.items()} == {"fjord": True, "paper": False}
    assert themes["fjord"].to_color_system().generate()["border"] == "teal"
    assert read_themes(tmp_path / "nowhere") == ({}, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('primry = "#fff"', "themes/x.toml: the key 'primry' is not known. Did you mean 'primary'?"),
        ("", "themes/x.toml: 'primary' is missing, the one colour that every theme needs."),
        ('primary = "blueish"', "themes/x.toml: 'primary' must be a colour such as \"#6FA8DC\"."),
        ('primary = "transparent"', "themes/x.toml: 'primary' must be a colour such as \"#6FA8DC\"."),
        ('primary = "#fff"\ndark = 1', "themes/x.toml: 'dark' must be true or false."),
        ('primary = "#fff"\ntext_alpha = 7', "themes/x.toml: 'text_alpha' must be a number from 0 to 1."),
        ('primary = "#fff"\nname = "nord"', "'name' must be different: there is already a theme 'nord'."),
        ('primary = "#fff"\nvariables = 1', "themes/x.toml: 'variables' must be a table."),
        ('primary = "#fff"\nvariables.borde = "red"', "'variables.borde' is not a colour of a theme. Did you mean"),
        ('primary = "#fff"\nvariables.border = "reddish"', "'variables.border' must be a colour such as \"#6FA8DC\"."),
        ("][", "themes/x.toml: Invalid"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_theme_is_told_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    themes, (problem,) = read_themes(folder(tmp_path, x=text, good='primary = "#88C0D0"'))
    assert set(themes) == {"good"}
    assert said in problem


@pytest.mark.parametrize(
    "colour",
    [
        f"rgb({'9' * 5_000},1,1)",
        f"hsl({'9' * 400},1%,1%)",
        "#" + "f" * 10_000,
        "red; } Screen { display: none",
    ],
)
def test_a_colour_that_cannot_be_is_told_with_its_key(tmp_path: Path, colour: str) -> None:
    themes, problems = read_themes(folder(tmp_path, x=f'primary = "{colour}"', good='primary = "#88C0D0"'))
    assert "good" in themes
    assert all("'primary' must be a colour" in problem for problem in problems)
    for theme in themes.values():
        theme.to_color_system().generate()


def test_names_of_themes_and_their_number_are_bounded(tmp_path: Path) -> None:
    place = folder(tmp_path, x=f'primary = "#fff"\nname = "{"x" * 61}"')
    assert "'name' must be a word" in read_themes(place)[1][0]
    for number in range(300):
        (tmp_path / "themes" / f"y{number:03}.toml").write_text('primary = "#88C0D0"')
    assert len(read_themes(place)[0]) < 300


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (folder(tmp_path) / "themes" / "x.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "themes" / "y.toml").mkdir()
    themes, problems = read_themes(tmp_path)
    assert themes == {}
    assert [problem.partition(":")[0] for problem in problems] == ["themes/x.toml", "themes/y.toml"]
