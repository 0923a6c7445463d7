"""Tables and figures that are worked examples, drawings or inputs: no number to compare, but a test or a command that
does what they show."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.experiments.report.claim import ALLGOEWER, BACCONI, GARAI, JHA, MINUTOLI, Claim, nothing, worked

WORKED = "papers/test_worked_tables.py"
HOSPITAL = "papers/test_role_views_of_a_hospital.py"
GRAPH = "papers/test_graph_approximation.py"
CHUNKS = "papers/test_continuous_mode.py"
# paper, item, what it shows, the test below tests/ that does the same
EXAMPLES: tuple[tuple[str, str, str, str], ...] = (
    (
        BACCONI,
        "Tables 2.1, 2.2",
        "what is published is 3-anonymous",
        f"{WORKED}::test_bacconi_2021_table_2_2_is_3_anonymous",
    ),
    (BACCONI, "Tables 3.1 to 3.3", "such rows can be fed: joined paths, cells of a grid", "laws/test_derived_laws.py"),
    (BACCONI, "Table 7.1", "every parameter is an option", "cli/test_stream_parameters.py"),
    (
        JHA,
        "Table II",
        "the default values are the model's",
        "papers/test_z_model.py::test_figure_4_by_the_papers_formula",
    ),
    (
        MINUTOLI,
        "the table of eight people",
        "value loss of two groupings: 885.99 and 576.32",
        "papers/test_kp_series.py::test_value_loss_of_the_two_groupings",
    ),
    (
        MINUTOLI,
        "l-diversity",
        "the bigger l, the more records are altered",
        "papers/test_kp_series.py::test_more_diversity_costs_more",
    ),
    (
        ALLGOEWER,
        "Tables 2 to 4",
        "doctor, nurse and administration, cell for cell",
        f"{HOSPITAL}::test_tables_2_to_4_cell_for_cell",
    ),
    (
        ALLGOEWER,
        "Table 5",
        "research: three people, two diagnoses",
        f"{HOSPITAL}::test_table_5_three_people_two_diagnoses",
    ),
    (
        ALLGOEWER,
        "Table 6",
        "the distribution of the working example",
        f"{WORKED}::test_allgoewer_2023_the_distribution_of_the_working_example",
    ),
    (ALLGOEWER, "Tables 7 to 9", "k, l and t as said", f"{WORKED}::test_allgoewer_2023_tables_7_8_and_9"),
    (ALLGOEWER, "Figure 2", "suppression", f"{HOSPITAL}::test_figure_2_suppression_leaves_an_asterisk"),
    (ALLGOEWER, "Figure 3", "blurring", f"{HOSPITAL}::test_figure_3_the_last_three_digits_of_a_card_stay"),
    (ALLGOEWER, "Figure 4", "substitution", f"{HOSPITAL}::test_figure_4_a_name_becomes_another_name"),
    (ALLGOEWER, "Figure 5", "tokenization", f"{HOSPITAL}::test_figure_5_a_password_becomes_a_token_and_back"),
    (ALLGOEWER, "Figure 6", "generalization", f"{HOSPITAL}::test_figure_6_berlin_becomes_germany_then_europe"),
    (ALLGOEWER, "Figure 7", "bucketizing", f"{HOSPITAL}::test_figure_7_the_age_27_lies_in_its_bucket"),
    (ALLGOEWER, "Figure 8", "noise", f"{HOSPITAL}::test_figure_8_noise_keeps_the_type_and_stays_near"),
    (ALLGOEWER, "Figure 9", "substitution by match", f"{HOSPITAL}::test_figure_9_conditional_substitution_by_match"),
    (ALLGOEWER, "Figure 10", "substitution by range", f"{HOSPITAL}::test_figure_10_conditional_substitution_by_range"),
    (
        ALLGOEWER,
        "Figure 11",
        "substitution by pattern",
        f"{HOSPITAL}::test_figure_11_conditional_substitution_by_regular_expression",
    ),
    (ALLGOEWER, "Figure 13", "shuffling", f"{HOSPITAL}::test_figure_13_columns_shuffle_independently"),
    (
        ALLGOEWER,
        "Figure 14",
        "information loss of Germany: 2/8",
        "papers/test_castle_tables.py::test_germany_loses_two_eighths",
    ),
    (
        GARAI,
        "Figures 1.1 to 1.4",
        "a join restores 4 of 4 names",
        f"{WORKED}::test_garai_2019_figures_1_1_to_1_4_truncation_restores_4_of_4",
    ),
    (
        GARAI,
        "Figures 1.5, 1.6",
        "suppression and generalization are 2-anonymous",
        f"{WORKED}::test_garai_2019_figures_1_5_and_1_6_are_2_anonymous",
    ),
    (
        GARAI,
        "Figure 1.7, Listings 3.3, 3.4",
        "a hierarchy of grades, by hand and built",
        f"{WORKED}::test_garai_2019_listings_3_3_and_3_4_are_the_same_tree",
    ),
    (
        GARAI,
        "Figure 1.8",
        "a table of several types is 2-anonymous",
        f"{WORKED}::test_garai_2019_figure_1_8_is_2_anonymous",
    ),
    (
        GARAI,
        "Figures 2.1 to 2.3",
        "the edge of the first two rows costs 5/3",
        f"{GRAPH}::test_the_edge_of_the_example_costs_five_thirds",
    ),
    (GARAI, "Figures 2.4 to 2.6", "two tables with one graph", f"{GRAPH}::test_two_tables_with_one_graph"),
    (GARAI, "Figures 2.7, 2.8", "the forest of the example", f"{GRAPH}::test_the_forest_of_the_example"),
    (GARAI, "Figures 2.9 to 2.11", "cut B, parts of 7 and 9", f"{GRAPH}::test_cut_b_of_the_example"),
    (GARAI, "Figure 3.5", "4 of [0..10]", f"{WORKED}::test_garai_2019_figure_3_5_the_value_4_of_0_to_10"),
    (
        GARAI,
        "Figures 3.6, 3.7",
        "prefixes of words",
        f"{WORKED}::test_garai_2019_figures_3_6_and_3_7_prefixes_of_words",
    ),
    (
        GARAI,
        "Figure 3.8, Listing 3.10",
        "the run as printed",
        f"{CHUNKS}::test_the_groups_of_figure_3_8_are_published_as_it_shows",
    ),
    (GARAI, "Figure 3.9", "the first chunk", f"{CHUNKS}::test_the_first_chunk_is_figure_3_9"),
    (
        GARAI,
        "Figure 3.10, Listing 3.11",
        "the second chunk (its left half contradicts Figure 3.9)",
        f"{CHUNKS}::test_listing_3_11_gives_the_right_half_of_figure_3_10",
    ),
    (GARAI, "Figure 3.11", "all rows at once", f"{CHUNKS}::test_all_rows_at_once_give_figure_3_11"),
)
# paper, item, what it shows, what there is of ours, why nothing is compared
DRAWN: tuple[tuple[str, str, str, str, str], ...] = (
    (
        BACCONI,
        "Figures 3.1 to 3.5",
        "samples per user and per attribute, by level",
        "drawn by `shoal experiment z-profile`",
        "pictures without numbers; Tables 3.4 and 3.5 are compared",
    ),
    (BACCONI, "Figure 4.3", "a queue with two ends", "–", "a drawing of a data structure"),
    (
        BACCONI,
        "section 7.1",
        "longer windows and a higher z at night",
        "measured by `shoal experiment z-night`",
        "proposed, not measured",
    ),
    (JHA, "Table I", "the names of the model", "–", "words"),
    (
        JHA,
        "Figures 3b, 6b",
        "p by several z, z = 1 too",
        "drawn by `shoal experiment z-model`, the formula beside the exact line",
        "the numbers that the text gives are compared",
    ),
    (
        MINUTOLI,
        "totals, and by P and k on all sets",
        "value and pattern loss",
        "drawn by `shoal experiment kp`",
        "pictures; the averages are compared",
    ),
    (MINUTOLI, "runtime", "by P and k", "measured by `shoal experiment kp`", "seconds of another machine"),
    (ALLGOEWER, "Table 1", "a correlation changed by one outlier", "–", "quoted from elsewhere; no anonymization"),
    (ALLGOEWER, "Figure 1", "the tree of masking functions", "–", "a drawing"),
    (GARAI, "Figures 3.1 to 3.4", "the parts of the program", "–", "drawings of the author's program"),
    (GARAI, "Figures 4.1 to 4.3", "tests and size of the author's program", "–", "say nothing of the method"),
)


def examples() -> Iterator[Claim]:
    """One line per table or figure that has nothing to compare."""
    for paper, item, what, test in EXAMPLES:
        yield worked(paper, item, what, f"tests/{test}")
    for paper, item, what, ours, why in DRAWN:
        yield nothing(paper, item, what, ours, why)
