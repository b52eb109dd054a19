//! The rows of events. Each event draws its numbers from its own seed.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Builder, RecordBatch, StringViewBuilder, TimestampMicrosecondBuilder};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::EVENTS_PER_ROUND;
use crate::rng::Rng;

/// Microseconds since the epoch of the first event: 2024-01-01.
const FIRST_MICROS: i64 = 1_704_067_200_000_000;
/// From one event to the next: 10,000 events a second.
const EVENT_MICROS: i64 = 100;
/// Auctions that are open at any time.
const OPEN_AUCTIONS: u64 = 100;
/// People who are active at any time.
const ACTIVE_PEOPLE: u64 = 1_000;
/// Of so many auctions, or people, one is hot.
const HOT_STEP: u64 = 100;
const FIRST_ID: i64 = 1_000;
const CHANNELS: u64 = 10_000;
const SIDE_ROWS: i64 = 10_000;

const STATES: &[&str] = &["AZ", "CA", "ID", "OR", "WA", "WY"];
const CITIES: &[&str] =
    &["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"];
const FIRST_NAMES: &[&str] =
    &["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"];
const LAST_NAMES: &[&str] = &["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"];
const HOT_CHANNELS: &[&str] = &["Google", "Facebook", "Baidu", "Apple"];

/// The numbers of one event.
fn rng_of(event: u64) -> Rng {
    Rng::new(event.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x6e65_786d)
}

fn micros_of(event: u64) -> i64 {
    FIRST_MICROS + event as i64 * EVENT_MICROS
}

/// Persons before an event.
fn n_persons(event: u64) -> u64 {
    event.div_ceil(EVENTS_PER_ROUND)
}

/// Auctions before an event.
fn n_auctions(event: u64) -> u64 {
    event / EVENTS_PER_ROUND * 3 + (event % EVENTS_PER_ROUND).saturating_sub(1).min(3)
}

/// A person who sells or bids: hot three times of four.
fn person_of(rng: &mut Rng, event: u64, hot_offset: u64) -> i64 {
    let newest = n_persons(event).max(1) - 1;
    let number = if rng.below(4) > 0 {
        (newest / HOT_STEP * HOT_STEP + hot_offset).min(newest)
    } else {
        let active = newest.min(ACTIVE_PEOPLE - 1) + 1;
        newest - rng.below(active as usize) as u64
    };
    FIRST_ID + number as i64
}

/// From 100 to 100 million, every power of ten alike.
fn price(rng: &mut Rng) -> i64 {
    let share = rng.below(1 << 30) as f64 / f64::from(1 << 30);
    (10f64.powf(share * 6.0) * 100.0).round() as i64
}

/// Letters without meaning.
fn letters(rng: &mut Rng, n: usize, text: &mut String) {
    text.clear();
    let mut bits = 0;
    for at in 0..n {
        if at % 12 == 0 {
            bits = rng.bits();
        }
        text.push(char::from(b'a' + (bits % 26) as u8));
        bits /= 26;
    }
}

fn text() -> DataType {
    DataType::Utf8View
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns are of their fields' types")
}

/// A column under construction.
#[derive(Default)]
struct Texts(StringViewBuilder);

impl Texts {
    fn push(&mut self, value: &str) {
        self.0.append_value(value);
    }

    fn finish(mut self) -> ArrayRef {
        let column = self.0.finish();
        debug_assert_eq!(arrow::array::Array::data_type(&column), &text());
        Arc::new(column)
    }
}

#[derive(Default)]
struct Longs(Int64Builder);

impl Longs {
    fn push(&mut self, value: i64) {
        self.0.append_value(value);
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

struct Instants(TimestampMicrosecondBuilder);

impl Default for Instants {
    fn default() -> Self {
        let of_micros = TimestampMicrosecondBuilder::new();
        Instants(of_micros.with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None)))
    }
}

impl Instants {
    fn push(&mut self, micros: i64) {
        self.0.append_value(micros);
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

pub(super) fn persons(from: u64, upto: u64) -> RecordBatch {
    let [mut name, mut email, mut card, mut city, mut state, mut extra] = [(); 6].map(|()| Texts::default());
    let (mut id, mut time) = (Longs::default(), Instants::default());
    let (mut buffer, mut line) = (String::new(), String::new());
    for event in (from..upto).filter(|event| event % EVENTS_PER_ROUND == 0) {
        let mut rng = rng_of(event);
        id.push(FIRST_ID + n_persons(event) as i64);
        let (first, last) = (*rng.pick(FIRST_NAMES), *rng.pick(LAST_NAMES));
        name.push(&format!("{first} {last}"));
        letters(&mut rng, 7, &mut buffer);
        email.push(&format!("{}@{buffer}.com", last.to_lowercase()));
        line.clear();
        (0..4).for_each(|_| write!(line, "{:04} ", rng.below(10_000)).expect("texts take all"));
        card.push(line.trim_end());
        city.push(CITIES[rng.below(CITIES.len())]);
        state.push(STATES[rng.below(STATES.len())]);
        time.push(micros_of(event));
        letters(&mut rng, 80, &mut buffer);
        extra.push(&buffer);
    }
    batch(vec![
        ("id", id.finish()),
        ("name", name.finish()),
        ("email_address", email.finish()),
        ("credit_card", card.finish()),
        ("city", city.finish()),
        ("state", state.finish()),
        ("date_time", time.finish()),
        ("extra", extra.finish()),
    ])
}

pub(super) fn auctions(from: u64, upto: u64) -> RecordBatch {
    let [mut item, mut description, mut extra] = [(); 3].map(|()| Texts::default());
    let [mut id, mut initial, mut reserve, mut seller, mut category] = [(); 5].map(|()| Longs::default());
    let (mut time, mut expires) = (Instants::default(), Instants::default());
    let mut buffer = String::new();
    for event in (from..upto).filter(|event| (1..=3).contains(&(event % EVENTS_PER_ROUND))) {
        let mut rng = rng_of(event);
        id.push(FIRST_ID + n_auctions(event) as i64);
        letters(&mut rng, 12, &mut buffer);
        item.push(&buffer);
        letters(&mut rng, 60, &mut buffer);
        description.push(&buffer);
        let first = price(&mut rng);
        initial.push(first);
        reserve.push(first + price(&mut rng));
        time.push(micros_of(event));
        // As long as it takes until so many auctions have come, twice at most.
        let open_micros = (OPEN_AUCTIONS * EVENTS_PER_ROUND / 3) as i64 * EVENT_MICROS;
        expires.push(micros_of(event) + 1_000 + rng.between(0, 2 * open_micros));
        seller.push(person_of(&mut rng, event, 0));
        category.push(10 + rng.below(5) as i64);
        letters(&mut rng, 100, &mut buffer);
        extra.push(&buffer);
    }
    batch(vec![
        ("id", id.finish()),
        ("item_name", item.finish()),
        ("description", description.finish()),
        ("initial_bid", initial.finish()),
        ("reserve", reserve.finish()),
        ("date_time", time.finish()),
        ("expires", expires.finish()),
        ("seller", seller.finish()),
        ("category", category.finish()),
        ("extra", extra.finish()),
    ])
}

pub(super) fn bids(from: u64, upto: u64) -> RecordBatch {
    let [mut channel, mut url, mut extra] = [(); 3].map(|()| Texts::default());
    let [mut auction, mut bidder, mut amount] = [(); 3].map(|()| Longs::default());
    let mut time = Instants::default();
    let (mut buffer, mut line) = (String::new(), String::new());
    for event in (from..upto).filter(|event| event % EVENTS_PER_ROUND > 3) {
        let mut rng = rng_of(event);
        let newest = n_auctions(event) - 1;
        let number = if rng.below(2) > 0 {
            newest / HOT_STEP * HOT_STEP
        } else {
            newest - rng.below(newest.min(OPEN_AUCTIONS - 1) as usize + 1) as u64
        };
        auction.push(FIRST_ID + number as i64);
        bidder.push(person_of(&mut rng, event, 1));
        amount.push(price(&mut rng));
        letters(&mut rng, 3, &mut buffer);
        line.clear();
        if rng.below(2) > 0 {
            let hot = rng.below(HOT_CHANNELS.len());
            channel.push(HOT_CHANNELS[hot]);
            write!(line, "https://www.nexmark.com/{buffer}/sale{hot}/item.htm?query=1")
        } else {
            let number = rng.below(CHANNELS as usize);
            channel.push(&format!("channel-{number}"));
            write!(line, "https://www.nexmark.com/{buffer}/sale/item.htm?query=1&channel_id={number}")
        }
        .expect("texts take all");
        url.push(&line);
        time.push(micros_of(event));
        letters(&mut rng, 40, &mut buffer);
        extra.push(&buffer);
    }
    batch(vec![
        ("auction", auction.finish()),
        ("bidder", bidder.finish()),
        ("price", amount.finish()),
        ("channel", channel.finish()),
        ("url", url.finish()),
        ("date_time", time.finish()),
        ("extra", extra.finish()),
    ])
}

pub(super) fn side() -> RecordBatch {
    let (mut key, mut value) = (Longs::default(), Texts::default());
    (0..SIDE_ROWS).for_each(|number| {
        key.push(number);
        value.push(&format!("value {number}"));
    });
    batch(vec![("key", key.finish()), ("value", value.finish())])
}
