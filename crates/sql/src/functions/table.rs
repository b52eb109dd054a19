//! All functions that SQL may call, by name and alias.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use datafusion_common::config::ConfigOptions;
use datafusion_expr::{AggregateUDF, Expr, ScalarUDF, WindowUDF};

use crate::functions::age::Age;
use crate::functions::all_elements::AllElements;
use crate::functions::at_time_zone::AtTimeZone;
use crate::functions::block::SlicedBlock;
use crate::functions::bounded::Bounded;
use crate::functions::checked::OneRow;
use crate::functions::choosing::Choosing;
use crate::functions::coalesce::Coalesce;
use crate::functions::expanded::Expanded;
use crate::functions::factorial::Factorial;
use crate::functions::finite::IsFinite;
use crate::functions::interval_lists::IntervalKey;
use crate::functions::interval_percentile::IntervalPercentile;
use crate::functions::intervals::{IntervalField, IntervalLength, IntervalOf, IntervalPart};
use crate::functions::moment_series::MomentSeries;
use crate::functions::numerics::Negative;
use crate::functions::of_numbers::OfNumbers;
use crate::functions::overlaps::Overlaps;
use crate::functions::series::TypedSeries;
use crate::functions::text::{TextFormat, TypeOf};
use crate::functions::text_hash::TextHash;
use crate::functions::totals::FunctionTotal;
use crate::functions::window_floor::WindowFloor;
use crate::functions::{
    aggregates, arrays, branches, bytea, cut_time, deviations, distinct_lists, element_forms, forms, json, letter_case,
    like_lists, most_frequent, ordered_sets, regex, similar, text, texts, trigonometry, unicode_forms, user_types,
};
use crate::resolve::type_names::UTC;

/// All functions by name and alias.
pub(crate) struct Functions {
    pub(crate) scalar: BTreeMap<String, Arc<ScalarUDF>>,
    pub(crate) aggregate: BTreeMap<String, Arc<AggregateUDF>>,
    pub(crate) window: BTreeMap<String, Arc<WindowUDF>>,
}

/// The built-in functions, collected once.
pub(crate) static FUNCTIONS: LazyLock<Functions> = LazyLock::new(Functions::new);

/// Names of PostgreSQL that DataFusion lacks, with its own name for the same.
const SCALAR_ALIASES: [(&str, &str); 6] = [
    ("ceiling", "ceil"),
    ("sign", "signum"),
    ("char_length", "character_length"),
    ("date_bin", "date_bin"),
    ("position", "strpos"),
    ("array_length", "array_length"),
];

const AGGREGATE_ALIASES: [(&str, &str); 3] = [("mean", "avg"), ("every", "bool_and"), ("variance", "var_samp")];

impl Functions {
    fn new() -> Self {
        let mut scalar = BTreeMap::new();
        let scalars = [OneRow::udf(), Age::udf(), TextFormat::udf(), TypeOf::udf()]
            .into_iter()
            .chain([
                AtTimeZone::udf(),
                WindowFloor::udf(),
                AllElements::udf(),
                SlicedBlock::udf(),
                Expanded::udf(),
                Negative::udf(),
            ])
            .chain(branches::all())
            .chain(text::all())
            .chain(datafusion_functions::all_default_functions())
            .chain(datafusion_functions_nested::all_default_nested_functions())
            // Last, for these take the names of others.
            .chain(crate::time::functions::all());
        // The present is an instant: timestamptz.
        let mut config = ConfigOptions::default();
        config.execution.time_zone = Some(UTC.into());
        for function in scalars {
            let function = function.inner().with_updated_config(&config).map_or(function, Arc::new);
            let function = MomentSeries::around(function);
            let function =
                OfNumbers::around(Choosing::around(Coalesce::around(Bounded::around(TypedSeries::around(function)))));
            insert(&mut scalar, function.name(), function.aliases(), &function);
        }
        // These replace functions of the same names.
        let ours = arrays::all()
            .chain(bytea::all())
            .chain(regex::all())
            .chain(forms::all())
            .chain(json::all())
            .chain(like_lists::all())
            .chain(texts::all())
            .chain(letter_case::all())
            .chain(unicode_forms::all())
            .chain(user_types::all())
            .chain(trigonometry::all())
            .chain(cut_time::all())
            .chain([TextHash::udf(), TextHash::extended_udf()])
            .chain([
                Overlaps::udf(),
                similar::udf(),
                IntervalLength::udf(),
                IntervalKey::udf(),
                IsFinite::udf(),
                Factorial::udf(),
            ])
            // (Parts of sums of intervals, which programs that are cut from queries name.)
            .chain([IntervalField::Months, IntervalField::Days, IntervalField::Micros].map(IntervalPart::udf))
            .chain([IntervalOf::udf(), IntervalPercentile::udf(), json::document_row()])
            // (Those of joins within bands, which such programs name too.)
            .chain(anabranch_plan::rewrite::bands::functions())
            .chain(distinct_lists::all())
            .chain(most_frequent::all())
            .chain(element_forms::all())
            .chain(deviations::all());
        for function in ours {
            for name in std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str)) {
                scalar.insert(name.to_string(), function.clone());
            }
        }
        let mut aggregate = BTreeMap::new();
        for function in aggregates::all().chain(ordered_sets::all()) {
            let function = FunctionTotal::around(function);
            insert(&mut aggregate, function.name(), function.aliases(), &function);
        }
        let mut window = BTreeMap::new();
        for function in datafusion_functions_window::all_default_window_functions() {
            insert(&mut window, function.name(), function.aliases(), &function);
        }
        SCALAR_ALIASES.iter().for_each(|(alias, name)| add_alias(&mut scalar, alias, name));
        AGGREGATE_ALIASES.iter().for_each(|(alias, name)| add_alias(&mut aggregate, alias, name));
        Self { scalar, aggregate, window }
    }

    /// All names that users may write, for hints.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.scalar.keys().chain(self.aggregate.keys()).chain(self.window.keys()).map(String::as_str);
        all.filter(|name| !name.starts_with("__"))
    }
}

fn insert<F>(map: &mut BTreeMap<String, Arc<F>>, name: &str, aliases: &[String], function: &Arc<F>) {
    map.insert(name.to_lowercase(), function.clone());
    for alias in aliases {
        map.entry(alias.to_lowercase()).or_insert_with(|| function.clone());
    }
}

fn add_alias<F>(map: &mut BTreeMap<String, Arc<F>>, alias: &str, name: &str) {
    if let Some(function) = map.get(name).cloned() {
        map.entry(alias.to_string()).or_insert(function);
    }
}

/// A call of one of our functions.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    FUNCTIONS.scalar[name].call(args)
}
