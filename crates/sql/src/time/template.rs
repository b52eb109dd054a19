//! The templates of `to_char(time, 'YYYY-MM-DD')`, `to_timestamp` and `to_date`, read into nodes.
//!
//! A node is a field with its modifiers (`FM`, `TM` before it, `TH` behind), or a character that
//! stands for itself. Fields are found as PostgreSQL finds them: the longest name at each place, in
//! capitals or small letters, never mixed but for `Month`, `Mon`, `Day` and `Dy`. Text in double
//! quotes stands for itself.

/// How the letters of a name, an era or an ordinal are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    Upper,
    Capital,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// `BC`, `AD`, with points or without.
    Era {
        points: bool,
    },
    /// `AM`, `PM`, with points or without.
    HalfDay {
        points: bool,
    },
    Century,
    DayName,
    DayNameShort,
    DayOfYear,
    DayOfMonth,
    /// Sunday is 1.
    DayOfWeek,
    /// `FF1` to `FF6`.
    Fraction(u8),
    /// `FX`: what follows is read exactly.
    Exact,
    Hour24,
    Hour12,
    IsoDayOfYear,
    /// Monday is 1.
    IsoDayOfWeek,
    IsoWeek,
    /// So many digits of the ISO year.
    IsoYear(u8),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthNameShort,
    Millisecond,
    Offset,
    Quarter,
    RomanMonth,
    SecondOfDay,
    Second,
    ZoneHour,
    ZoneMinute,
    Zone,
    Microsecond,
    WeekOfYear,
    WeekOfMonth,
    /// `Y,YYY`.
    YearWithComma,
    /// So many digits of the year.
    Year(u8),
}

/// `th` behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordinal {
    None,
    Upper,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TemplatePlace {
    pub(crate) field: Field,
    /// As it is written in the template, for messages; its length is that of the field.
    pub(crate) name: &'static str,
    pub(crate) letters: Letters,
    /// `FM`: no zeros or spaces to fill up.
    pub(crate) is_bare: bool,
    /// `TM`: the language's name, without spaces to fill up.
    pub(crate) is_local: bool,
    pub(crate) ordinal: Ordinal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TemplateNode {
    Field(TemplatePlace),
    /// A letter, a digit, or any quoted character.
    Character(char),
    /// A punctuation mark.
    Separator(char),
    Space(char),
}

type Name = (&'static str, Field, Letters);

/// The names of fields, a longer one before those that begin it.
const NAMES: &[Name] = {
    use Field::*;
    use Letters::*;
    &[
        ("A.D.", Era { points: true }, Upper),
        ("A.M.", HalfDay { points: true }, Upper),
        ("AD", Era { points: false }, Upper),
        ("AM", HalfDay { points: false }, Upper),
        ("B.C.", Era { points: true }, Upper),
        ("BC", Era { points: false }, Upper),
        ("CC", Century, Upper),
        ("DAY", DayName, Upper),
        ("DDD", DayOfYear, Upper),
        ("DD", DayOfMonth, Upper),
        ("DY", DayNameShort, Upper),
        ("Day", DayName, Capital),
        ("Dy", DayNameShort, Capital),
        ("D", DayOfWeek, Upper),
        ("FF1", Fraction(1), Upper),
        ("FF2", Fraction(2), Upper),
        ("FF3", Fraction(3), Upper),
        ("FF4", Fraction(4), Upper),
        ("FF5", Fraction(5), Upper),
        ("FF6", Fraction(6), Upper),
        ("FX", Exact, Upper),
        ("HH24", Hour24, Upper),
        ("HH12", Hour12, Upper),
        ("HH", Hour12, Upper),
        ("IDDD", IsoDayOfYear, Upper),
        ("ID", IsoDayOfWeek, Upper),
        ("IW", IsoWeek, Upper),
        ("IYYY", IsoYear(4), Upper),
        ("IYY", IsoYear(3), Upper),
        ("IY", IsoYear(2), Upper),
        ("I", IsoYear(1), Upper),
        ("J", Julian, Upper),
        ("MI", Minute, Upper),
        ("MM", Month, Upper),
        ("MONTH", MonthName, Upper),
        ("MON", MonthNameShort, Upper),
        ("MS", Millisecond, Upper),
        ("Month", MonthName, Capital),
        ("Mon", MonthNameShort, Capital),
        ("OF", Offset, Upper),
        ("P.M.", HalfDay { points: true }, Upper),
        ("PM", HalfDay { points: false }, Upper),
        ("Q", Quarter, Upper),
        ("RM", RomanMonth, Upper),
        ("SSSSS", SecondOfDay, Upper),
        ("SSSS", SecondOfDay, Upper),
        ("SS", Second, Upper),
        ("TZH", ZoneHour, Upper),
        ("TZM", ZoneMinute, Upper),
        ("TZ", Zone, Upper),
        ("US", Microsecond, Upper),
        ("WW", WeekOfYear, Upper),
        ("W", WeekOfMonth, Upper),
        ("Y,YYY", YearWithComma, Upper),
        ("YYYY", Year(4), Upper),
        ("YYY", Year(3), Upper),
        ("YY", Year(2), Upper),
        ("Y", Year(1), Upper),
        ("a.d.", Era { points: true }, Lower),
        ("a.m.", HalfDay { points: true }, Lower),
        ("ad", Era { points: false }, Lower),
        ("am", HalfDay { points: false }, Lower),
        ("b.c.", Era { points: true }, Lower),
        ("bc", Era { points: false }, Lower),
        ("cc", Century, Lower),
        ("day", DayName, Lower),
        ("ddd", DayOfYear, Lower),
        ("dd", DayOfMonth, Lower),
        ("dy", DayNameShort, Lower),
        ("d", DayOfWeek, Lower),
        ("ff1", Fraction(1), Lower),
        ("ff2", Fraction(2), Lower),
        ("ff3", Fraction(3), Lower),
        ("ff4", Fraction(4), Lower),
        ("ff5", Fraction(5), Lower),
        ("ff6", Fraction(6), Lower),
        ("fx", Exact, Lower),
        ("hh24", Hour24, Lower),
        ("hh12", Hour12, Lower),
        ("hh", Hour12, Lower),
        ("iddd", IsoDayOfYear, Lower),
        ("id", IsoDayOfWeek, Lower),
        ("iw", IsoWeek, Lower),
        ("iyyy", IsoYear(4), Lower),
        ("iyy", IsoYear(3), Lower),
        ("iy", IsoYear(2), Lower),
        ("i", IsoYear(1), Lower),
        ("j", Julian, Lower),
        ("mi", Minute, Lower),
        ("mm", Month, Lower),
        ("month", MonthName, Lower),
        ("mon", MonthNameShort, Lower),
        ("ms", Millisecond, Lower),
        ("of", Offset, Lower),
        ("p.m.", HalfDay { points: true }, Lower),
        ("pm", HalfDay { points: false }, Lower),
        ("q", Quarter, Lower),
        ("rm", RomanMonth, Lower),
        ("sssss", SecondOfDay, Lower),
        ("ssss", SecondOfDay, Lower),
        ("ss", Second, Lower),
        ("tzh", ZoneHour, Lower),
        ("tzm", ZoneMinute, Lower),
        ("tz", Zone, Lower),
        ("us", Microsecond, Lower),
        ("ww", WeekOfYear, Lower),
        ("w", WeekOfMonth, Lower),
        ("y,yyy", YearWithComma, Lower),
        ("yyyy", Year(4), Lower),
        ("yyy", Year(3), Lower),
        ("yy", Year(2), Lower),
        ("y", Year(1), Lower),
    ]
};

/// The nodes of a template.
///
/// # Errors
/// `SP`, which PostgreSQL has not implemented either.
pub(crate) fn parse(template: &str) -> Result<Vec<TemplateNode>, String> {
    let mut nodes = Vec::with_capacity(template.len());
    let mut rest = template;
    while !rest.is_empty() {
        let (is_bare, is_local) = (starts(rest, "FM"), starts(rest, "TM"));
        if is_bare || is_local {
            rest = &rest[2..];
        }
        if let Some((name, field, letters)) = NAMES.iter().find(|(name, ..)| rest.starts_with(name)) {
            rest = &rest[name.len()..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Ordinal::Upper,
                Some("th") => Ordinal::Lower,
                Some("SP") => return Err(format!("template modifier SP (spelling) of \"{name}\" is not supported")),
                _ => Ordinal::None,
            };
            rest = &rest[if ordinal == Ordinal::None { 0 } else { 2 }..];
            nodes.push(TemplateNode::Field(TemplatePlace {
                field: *field,
                name,
                letters: *letters,
                is_bare,
                is_local,
                ordinal,
            }));
        } else if let Some(quoted) = rest.strip_prefix('"') {
            rest = read_quoted(quoted, &mut nodes);
        } else {
            rest = rest.strip_prefix('\\').filter(|after| after.starts_with('"')).unwrap_or(rest);
            let Some(first) = rest.chars().next() else { break };
            rest = &rest[first.len_utf8()..];
            nodes.push(match first {
                mark if mark.is_ascii_punctuation() => TemplateNode::Separator(mark),
                space if super::tokens::is_space(space) => TemplateNode::Space(space),
                other => TemplateNode::Character(other),
            });
        }
    }
    Ok(nodes)
}

/// The template of the rows before, kept while it stays the same.
#[derive(Default)]
pub(super) struct Templates {
    text: String,
    nodes: Vec<TemplateNode>,
}

impl Templates {
    /// # Errors
    /// Those of [`parse`].
    pub(super) fn nodes(&mut self, text: &str) -> Result<&[TemplateNode], String> {
        if text != self.text {
            self.nodes = parse(text)?;
            self.text = text.to_string();
        }
        Ok(&self.nodes)
    }
}

fn starts(text: &str, modifier: &str) -> bool {
    text.get(..2).is_some_and(|start| start == modifier || start == modifier.to_lowercase())
}

/// Adds the characters of a quoted text; answers what follows the closing quote.
fn read_quoted<'t>(text: &'t str, nodes: &mut Vec<TemplateNode>) -> &'t str {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return &text[at + 1..],
            '\\' => nodes.push(TemplateNode::Character(chars.next().map_or('\\', |(_, escaped)| escaped))),
            other => nodes.push(TemplateNode::Character(other)),
        }
    }
    ""
}

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Letters of a short name.
pub(crate) const SHORT: usize = 3;

pub(crate) const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_quotes_protect() {
        let names = |template| {
            let nodes = parse(template).expect("it is a template");
            let name = |node: &TemplateNode| match node {
                TemplateNode::Field(place) => place.name.to_string(),
                TemplateNode::Character(c) | TemplateNode::Separator(c) | TemplateNode::Space(c) => format!("'{c}'"),
            };
            nodes.iter().map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("YYYY-MM"), "YYYY '-' MM");
        assert_eq!(names("SSSSS"), "SSSSS");
        assert_eq!(names("FMDDth\"DD\\\"\""), "DD 'D' 'D' '\"'");
        assert_eq!(names("Yyyyy x"), "Y yyyy ' ' 'x'");
        assert!(parse("DDSP").is_err());
    }
}
