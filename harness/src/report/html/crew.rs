//! The crew: a picture of its agents, and what crossed each edge.

use maud::{Markup, html};

use super::facts::table;
use super::scrolled;
use crate::report::words;
use crate::run::{CrewEdge, RunRecord};

/// Width of a column, width and height of a box, and distance of rows.
const SIZES: [usize; 4] = [380, 150, 36, 64];

pub(super) fn part(run: &RunRecord) -> Option<Markup> {
    (!run.crew.is_empty()).then(|| {
        html! {
            (scrolled("Picture of the crew", &picture(&run.crew)))
            (table("Edges of the crew", &words::CREW, &words::crew(run)))
        }
    })
}

/// Boxes in columns by their distance from the first callers, and a line for each edge.
fn picture(edges: &[CrewEdge]) -> Markup {
    let [column, width, height, row] = SIZES;
    let places = places(edges);
    let last = |of: fn(&(&str, usize, usize)) -> usize| places.iter().map(of).max().unwrap_or(0);
    let size = (
        last(|place| place.1) * column + width + 4,
        (last(|place| place.2) + 1) * row,
    );
    let at = |name: &str| {
        let place = places.iter().find(|place| place.0 == name);
        place.map_or((0, 0), |(_, x, y)| (x * column + 2, y * row + 2))
    };
    html! {
        svg class="crew" role="img" aria-label="The agents of the crew and their calls"
            width=(size.0) height=(size.1) viewBox={ "0 0 " (size.0) " " (size.1) } {
            @for edge in edges {
                @let (from, to) = (at(edge.caller()), at(&edge.to));
                @let (x1, y1, y2) = (from.0 + width, from.1 + height / 2, to.1 + height / 2);
                line class=(if edge.failed > 0 { "edge failed" } else { "edge" }) x1=(x1) y1=(y1) x2=(to.0) y2=(y2) {}
                text x=(usize::midpoint(x1, to.0)) y=(usize::midpoint(y1, y2) - 5) text-anchor="middle" { (words::crossed(edge)) }
            }
            @for (name, x, y) in &places {
                rect class="agent" x=(x * column + 2) y=(y * row + 2) width=(width) height=(height) rx="6" {}
                text x=(x * column + 2 + width / 2) y=(y * row + 7 + height / 2) text-anchor="middle" {
                    (name.chars().take(18).collect::<String>())
                }
            }
        }
    }
}

fn place<'e>(name: &'e str, column: usize, places: &mut Vec<(&'e str, usize, usize)>) {
    let rows = places.iter().filter(|place| place.1 == column).count();
    places.push((name, column, rows));
}

/// Each name with its column and its row.
fn places(edges: &[CrewEdge]) -> Vec<(&str, usize, usize)> {
    let is_called = |name: &str| {
        edges
            .iter()
            .any(|edge| edge.to == name && edge.caller() != name)
    };
    let mut open: Vec<&str> = edges
        .iter()
        .map(CrewEdge::caller)
        .filter(|name| !is_called(name))
        .collect();
    // In a circle the first caller is as good as any.
    open.extend(edges.iter().map(CrewEdge::caller));
    let mut places: Vec<(&str, usize, usize)> = Vec::new();
    for root in open {
        if places.iter().any(|place| place.0 == root) {
            continue;
        }
        place(root, 0, &mut places);
        let mut next = places.len() - 1;
        while let Some((from, column, _)) = places.get(next).copied() {
            for edge in edges.iter().filter(|edge| edge.caller() == from) {
                if !places.iter().any(|place| place.0 == edge.to) {
                    place(&edge.to, column + 1, &mut places);
                }
            }
            next += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_stand_in_columns_by_their_distance_from_the_first_caller() {
        let edges = |pairs: &[(&str, &str)]| -> Vec<CrewEdge> {
            let edge = |(from, to): &(&str, &str)| CrewEdge {
                from: Some((*from).to_owned()),
                to: (*to).to_owned(),
                ..CrewEdge::default()
            };
            pairs.iter().map(edge).collect()
        };
        let crew = edges(&[("b", "c"), ("a", "b"), ("a", "d"), ("d", "b")]);
        assert_eq!(
            places(&crew),
            [("a", 0, 0), ("b", 1, 0), ("d", 1, 1), ("c", 2, 0)]
        );
        // A circle has a first caller too.
        assert_eq!(
            places(&edges(&[("a", "b"), ("b", "a")])),
            [("a", 0, 0), ("b", 1, 0)]
        );
    }
}
