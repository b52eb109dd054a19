//! Rows of the input: position reports and queries, and their text form of fifteen integers.
//!
//! Source: the format of the benchmark's own files; unused fields are -1.

use std::io::{self, BufRead, Write};

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// Type 0: a vehicle tells its position.
    Report,
    /// Type 2: asks for the balance of an account.
    Balance,
    /// Type 3: asks for a day's expenditure.
    Expenditure,
    /// Type 4: asks for a travel time. Accepted and dropped.
    TravelTime,
}

impl RowKind {
    /// The number in the first field.
    pub fn number(self) -> u8 {
        match self {
            RowKind::Report => 0,
            RowKind::Balance => 2,
            RowKind::Expenditure => 3,
            RowKind::TravelTime => 4,
        }
    }
}

/// The lane of an exit ramp.
pub(crate) const EXIT: u8 = 4;

/// One row. Fields that its kind does not use are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Seconds since the start.
    pub time: u32,
    /// What it is.
    pub kind: RowKind,
    /// Vehicle.
    pub vid: u32,
    /// Miles per hour, 0 to 100.
    pub speed: u8,
    /// Expressway.
    pub xway: u16,
    /// 0 entrance ramp, 1 to 3 travel lanes, 4 exit ramp.
    pub lane: u8,
    /// 0 eastbound, 1 westbound.
    pub direction: u8,
    /// Segment, 0 to 99.
    pub segment: u8,
    /// Feet from the west end.
    pub position: u32,
    /// Number of the query.
    pub query: u32,
    /// Day of an expenditure query: 1 is yesterday.
    pub day: u8,
}

impl Row {
    /// A position report; the segment follows from the position.
    #[allow(clippy::too_many_arguments)]
    pub fn report(time: u32, vid: u32, speed: u8, xway: u16, lane: u8, direction: u8, position: u32) -> Row {
        let segment = (position / 5280) as u8;
        Row { time, kind: RowKind::Report, vid, speed, xway, lane, direction, segment, position, query: 0, day: 0 }
    }

    /// A query; `xway` and `day` are of expenditure queries.
    pub fn query(time: u32, kind: RowKind, vid: u32, query: u32, xway: u16, day: u8) -> Row {
        Row { kind, query, day, ..Row::report(time, vid, 0, xway, 0, 0, 0) }
    }

    /// The text form, without the end of the line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Row { time, kind, vid, speed, xway, lane, direction, segment, position, query, day } = self;
        match kind {
            RowKind::Report => {
                write!(out, "0,{time},{vid},{speed},{xway},{lane},{direction},{segment},{position},-1,-1,-1,-1,-1,-1")
            }
            RowKind::Balance => write!(out, "2,{time},{vid},-1,-1,-1,-1,-1,-1,{query},-1,-1,-1,-1,-1"),
            RowKind::Expenditure => write!(out, "3,{time},{vid},-1,{xway},-1,-1,-1,-1,{query},-1,-1,-1,-1,{day}"),
            RowKind::TravelTime => write!(out, "4,{time},{vid},-1,{xway},-1,-1,-1,-1,{query},0,0,0,0,-1"),
        }
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// What is wrong, without the place.
    pub fn parse(line: &str) -> Result<Row, String> {
        let mut fields = [0i64; 15];
        let mut n_fields = 0;
        for text in line.trim_end().split(',') {
            let field =
                fields.get_mut(n_fields).ok_or_else(|| "a row has 15 fields, but this one has more".to_owned())?;
            *field = text.trim().parse().map_err(|_| format!("field {} is no integer: '{text}'", n_fields + 1))?;
            n_fields += 1;
        }
        if n_fields != 15 {
            return Err(format!("a row has 15 fields, but this one has {n_fields}"));
        }
        let within = |at: usize, name: &str, max: i64| match fields[at] {
            value if (0..=max).contains(&value) => Ok(value),
            value => Err(format!("{name} (field {}) lies between 0 and {max}, not at {value}", at + 1)),
        };
        let time = within(1, "the time", 86_400 * 7)? as u32;
        let vid = within(2, "the vehicle", i64::from(i32::MAX))? as u32;
        let query = |kind| -> Result<Row, String> {
            let query = within(9, "the query", i64::from(u32::MAX))? as u32;
            let xway = if kind == RowKind::Expenditure { within(4, "the expressway", 65_535)? as u16 } else { 0 };
            let day = if kind == RowKind::Expenditure { within(14, "the day", 69)? as u8 } else { 0 };
            Ok(Row::query(time, kind, vid, query, xway, day))
        };
        match fields[0] {
            0 => Ok(Row {
                time,
                kind: RowKind::Report,
                vid,
                speed: within(3, "the speed", 255)? as u8,
                xway: within(4, "the expressway", 65_535)? as u16,
                lane: within(5, "the lane", 4)? as u8,
                direction: within(6, "the direction", 1)? as u8,
                segment: within(7, "the segment", 99)? as u8,
                position: within(8, "the position", 527_999)? as u32,
                query: 0,
                day: 0,
            }),
            2 => query(RowKind::Balance),
            3 => query(RowKind::Expenditure),
            4 => query(RowKind::TravelTime),
            other => Err(format!("the type of a row is 0, 2, 3 or 4, not {other}")),
        }
    }
}

/// Reads rows of a file, one a line; empty lines are left out.
///
/// # Errors
/// `Invalid data` names the line; other errors are the file's.
pub fn read(input: impl BufRead) -> impl Iterator<Item = io::Result<Row>> {
    input.lines().enumerate().filter_map(|(at, line)| match line {
        Ok(line) if line.trim().is_empty() => None,
        Ok(line) => Some(
            Row::parse(&line)
                .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {reason}", at + 1))),
        ),
        Err(error) => Some(Err(error)),
    })
}

/// The rows of one second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Seconds since the start.
    pub time: u32,
    /// In any order; at most one report a vehicle.
    pub rows: Vec<Row>,
    /// Reports left out because their vehicle had reported in that second already.
    pub n_refused: usize,
}

/// Groups rows, which come in order of time, by second. A second report of a vehicle in one second
/// is refused. Seconds without rows come too.
///
/// # Errors
/// When a row lies before the row ahead of it.
pub struct Seconds<I: Iterator<Item = io::Result<Row>>> {
    rows: std::iter::Peekable<I>,
    next: u32,
}

impl<I: Iterator<Item = io::Result<Row>>> Seconds<I> {
    /// Groups these rows, from second 0 on.
    pub fn new(rows: I) -> Seconds<I> {
        Seconds { rows: rows.peekable(), next: 0 }
    }
}

impl<I: Iterator<Item = io::Result<Row>>> Iterator for Seconds<I> {
    type Item = io::Result<Second>;

    fn next(&mut self) -> Option<io::Result<Second>> {
        self.rows.peek()?;
        let time = self.next;
        let mut rows = Vec::new();
        while let Some(row) = self.rows.next_if(|row| row.as_ref().map_or(true, |row| row.time <= time)) {
            match row {
                Ok(row) if row.time < time => {
                    let error = format!("a row at second {} comes after second {time}", row.time);
                    return Some(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
                }
                Ok(row) => rows.push(row),
                Err(error) => return Some(Err(error)),
            }
        }
        self.next += 1;
        let n_rows = rows.len();
        let rows = first_reports(rows);
        Some(Ok(Second { time, n_refused: n_rows - rows.len(), rows }))
    }
}

/// The rows without further reports of a vehicle.
fn first_reports(mut rows: Vec<Row>) -> Vec<Row> {
    let mut seen = std::collections::HashSet::with_capacity(rows.len());
    rows.retain(|row| row.kind != RowKind::Report || seen.insert(row.vid));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_their_text_form() {
        let rows = [
            Row::report(17, 107, 32, 3, 0, 1, 53_320),
            Row::query(26, RowKind::Balance, 433, 2, 0, 0),
            Row::query(10, RowKind::Expenditure, 231, 0, 1, 60),
            Row::query(23, RowKind::TravelTime, 396, 1, 0, 0),
        ];
        for row in rows {
            let mut text = Vec::new();
            row.write(&mut text).unwrap();
            assert_eq!(Row::parse(std::str::from_utf8(&text).unwrap()), Ok(row));
        }
    }

    #[test]
    fn bad_rows_are_named_by_line_and_field() {
        let text = "0,0,107,32,0,0,0,10,53320,-1,-1,-1,-1,-1,-1\n0,0,1,32,0,7,0,10,53320,-1,-1,-1,-1,-1,-1\n";
        let errors: Vec<String> = read(text.as_bytes()).filter_map(|row| Some(row.err()?.to_string())).collect();
        assert_eq!(errors, ["line 2: the lane (field 6) lies between 0 and 4, not at 7"]);
    }

    #[test]
    fn a_second_report_of_a_vehicle_in_one_second_is_refused() {
        let rows = [Row::report(1, 7, 9, 0, 1, 0, 10), Row::report(1, 7, 9, 0, 1, 0, 20)];
        let seconds: Vec<Second> = Seconds::new(rows.into_iter().map(Ok)).map(|second| second.unwrap()).collect();
        assert_eq!(seconds.len(), 2);
        assert_eq!((seconds[1].rows.len(), seconds[1].n_refused), (1, 1));
    }
}
