//! Lines as SVG: small, plain, for `bench/results`.

use std::fmt::Write as _;

/// A named line.
pub struct Line<'a> {
    pub name: &'a str,
    /// Ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// How values become places.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Logarithmic,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;
const COLORS: [&str; 4] = ["#0b6e99", "#c2571a", "#3f7d20", "#6b3fa0"];

/// A range of values, and where they are on an axis.
struct Axis {
    scale: Scale,
    min: f64,
    max: f64,
}

impl Axis {
    fn new(scale: Scale, values: impl Iterator<Item = f64> + Clone) -> Axis {
        let (min, max) = match scale {
            Scale::Linear => (0.0, values.fold(0.0, f64::max)),
            Scale::Logarithmic => {
                let positive = values.filter(|value| *value > 0.0);
                let (min, max) = (positive.clone().fold(f64::MAX, f64::min), positive.fold(1e-9, f64::max));
                (10f64.powf(min.min(max).log10().floor()), 10f64.powf(max.log10().ceil()))
            }
        };
        Axis { scale, min, max: if max > min { max } else { min + 1.0 } }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.min) / (self.max - self.min),
            Scale::Logarithmic => (value.max(self.min) / self.min).log10() / (self.max / self.min).log10(),
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => (0..=4).map(|tick| self.max * f64::from(tick) / 4.0).collect(),
            Scale::Logarithmic => {
                let (from, to) = (self.min.log10().round() as i32, self.max.log10().round() as i32);
                (from..=to).map(|power| 10f64.powi(power)).collect()
            }
        }
    }
}

/// Lines over two labelled axes, as an SVG document.
pub fn plot(x_label: &str, x_scale: Scale, y_label: &str, y_scale: Scale, lines: &[Line<'_>]) -> String {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let x_axis = Axis::new(x_scale, points().map(|point| point.0));
    let y_axis = Axis::new(y_scale, points().map(|point| point.1));
    let x = |value: f64| MARGIN + x_axis.place(value) * (WIDTH - 1.5 * MARGIN);
    let y = |value: f64| HEIGHT - MARGIN - y_axis.place(value) * (HEIGHT - 1.5 * MARGIN);
    let mut svg = String::new();
    let mut put = |text: String| writeln!(svg, "{text}").expect("text can be appended to text");
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>"
    ));
    let (left, right, top, bottom) = (MARGIN, WIDTH - 0.5 * MARGIN, 0.5 * MARGIN, HEIGHT - MARGIN);
    for tick in x_axis.ticks() {
        let at = x(tick);
        put(format!("<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>"));
        put(format!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>", bottom + 16.0));
    }
    for tick in y_axis.ticks() {
        let at = y(tick);
        put(format!("<line x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>"));
        put(format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>", left - 6.0, at + 4.0));
    }
    put(format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{x_label}</text>",
        (left + right) / 2.0,
        bottom + 40.0
    ));
    put(format!("<text x=\"{left}\" y=\"{:.1}\">{y_label}</text>", top - 10.0));
    for (index, line) in lines.iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let path: Vec<String> =
            line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        put(format!("<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" points=\"{}\"/>", path.join(" ")));
        let at = top + 16.0 * (index + 1) as f64;
        put(format!(
            "<text x=\"{:.1}\" y=\"{at:.1}\" text-anchor=\"end\" fill=\"{color}\">{}</text>",
            right - 8.0,
            line.name
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
