//! What `tune` found: which variant serves which slot, from which size on, and what such a policy
//! costs over the best choice in each held-out cell.

use super::Section;
use super::markup::{Element, element};
use super::table::table;
use crate::results::{Fields, Results};
use serde_json::Value;

pub(super) fn section(results: &Results) -> Option<Section> {
    let rows = |key: &str| -> Vec<&Fields> {
        let list = results.others.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object).collect()
    };
    let choices = rows("choices");
    let own = results.others.get("regret").and_then(Value::as_object);
    if choices.is_empty() && own.is_none() {
        return None;
    }
    let mut content = vec![
        element("p").text(
            "What serves each slot, and from which size on the non-temporal path is taken. A \
             default is kept where nothing else is clearly better; the saving is of the \
             operation-related time, with its 95 % interval.",
        ),
        table(
            &["slot", "", "chosen", "default", "verdict", "saving", "cells"],
            choices.iter().map(|row| choice(row)).collect(),
        ),
    ];
    let number = |key| own.and_then(|own| own.get(key)).and_then(Value::as_u64).unwrap_or(0);
    content.push(element("h3").text("Regret"));
    content.push(element("p").text(format_args!(
        "How much longer the operation-related time is than with the best variant of each cell, on \
         the {} cells that were held out from fitting; {} of them are too noisy to say anything.",
        number("held_out"),
        number("unclear")
    )));
    let own = own.map(|row| regret(row, "tuned"));
    let rivals = rows("rivals");
    let rivals = rivals.iter().map(|row| regret(row, &words(row, "policy")));
    content.push(table(
        &["policy", "cells", "median", "95th percentile", "worst", "where"],
        own.into_iter().chain(rivals).collect(),
    ));
    Some(Section::new("policy", "The policy", content))
}

fn choice(row: &Fields) -> Element {
    let saving = match percent(row, "saving") {
        Some(saving) => {
            let end = |key| percent(row, key).unwrap_or_default();
            format!("{saving} ({} to {})", end("saving_low"), end("saving_high"))
        }
        None => "-".into(),
    };
    let [name, part, chosen, default, verdict] =
        ["name", "part", "chosen", "default", "verdict"].map(|key| words(row, key));
    line([name, part, chosen, default, verdict], [saving, words(row, "cells")])
}

fn regret(row: &Fields, policy: &str) -> Element {
    let share = |key| percent(row, key).unwrap_or("-".into());
    let place = match words(row, "same_as").as_str() {
        "" => words(row, "worst_cell"),
        other => format!("as {other}"),
    };
    let figures = [words(row, "cells"), share("median"), share("p95"), share("worst")];
    line([policy.to_owned()], figures).child(element("td").text(place))
}

fn line<const W: usize, const N: usize>(words: [String; W], numbers: [String; N]) -> Element {
    element("tr")
        .children(words.map(|word| element("td").text(word)))
        .children(numbers.map(|number| element("td").class("number").text(number)))
}

fn words(row: &Fields, key: &str) -> String {
    match row.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn percent(row: &Fields, key: &str) -> Option<String> {
    let share = row.get(key)?.as_f64()?;
    Some(format!("{:.1} %", share * 100.0))
}
