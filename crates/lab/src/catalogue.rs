//! All experiments, and which of them a name means.

use crate::dsfq;
use crate::dsptf;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::netraid;
use crate::retrieval;
use crate::robustore;
use crate::world;

/// All experiments, in the order of their papers.
pub fn all() -> Vec<Box<dyn Experiment>> {
    let papers = [
        dsptf::experiments(),
        dsfq::experiments(),
        retrieval::experiments(),
        robustore::experiments(),
        netraid::experiments(),
    ];
    papers.into_iter().flatten().chain(world::experiments()).collect()
}

/// The experiments that `name` means: one by its id, a paper's by the part before the point, or `all`.
///
/// # Errors
/// If it means none.
pub fn find(name: &str) -> Result<Vec<Box<dyn Experiment>>, LabError> {
    let is_meant =
        |id: &str| name == "all" || id == name || id.split_once('.').is_some_and(|(paper, _)| paper == name);
    let found: Vec<_> = all().into_iter().filter(|experiment| is_meant(experiment.id())).collect();
    if found.is_empty() {
        return Err(LabError::Unknown { name: name.to_owned(), hint: hint(name) });
    }
    Ok(found)
}

/// An id that contains the name, or is contained in it.
fn hint(name: &str) -> String {
    let experiments = all();
    let near = experiments.iter().map(|experiment| experiment.id()).find(|id| {
        !name.is_empty()
            && (id.contains(name) || id.split_once('.').is_some_and(|(_, figure)| name.contains(figure)))
    });
    near.map_or(String::new(), |id| format!(" (did you mean '{id}'?)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use crate::papers::{PAPERS, parameters};

    #[test]
    fn every_experiment_has_its_paper_and_assumptions() {
        let experiments = all();
        for experiment in &experiments {
            let parameters = parameters(experiment.paper());
            for name in experiment.assumptions() {
                assert!(!parameters.get(name).why.is_empty());
            }
            let points = experiment.points(&parameters, Scale::Quick).unwrap();
            assert!(!points.is_empty(), "{}", experiment.id());
        }
    }

    #[test]
    fn ids_are_unique_and_every_assumption_is_used() {
        let experiments = all();
        let mut ids: Vec<&str> = experiments.iter().map(|experiment| experiment.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), experiments.len());
        for paper in PAPERS.iter().map(|paper| paper.id) {
            for assumption in parameters(paper).all() {
                let is_used = |experiment: &dyn Experiment| {
                    experiment.paper() == paper
                        && experiment.assumptions().contains(&assumption.name.as_str())
                };
                assert!(
                    experiments.iter().any(|experiment| is_used(experiment.as_ref())),
                    "{paper}: no experiment uses {}",
                    assumption.name
                );
            }
        }
    }

    #[test]
    fn names_mean_one_a_papers_or_all() {
        assert_eq!(find("dsptf.fig1").unwrap().len(), 1);
        let count = |name: &str| find(name).unwrap().len();
        let papers = ["dsptf", "dsfq", "retrieval", "robustore", "netraid", "world"];
        assert!(count("dsptf") > 1 && papers.map(count).iter().sum::<usize>() == count("all"));
        let Err(error) = find("fig1") else { panic!("found") };
        assert!(error.to_string().contains("did you mean 'dsptf.fig1'?"), "{error}");
    }
}
