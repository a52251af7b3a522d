"""The pure parts of scripts/worth: windows, percentiles, orders, verdicts and the picture."""
import pathlib
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/worth"))
import report  # noqa: E402

TITLES = {"a": "alone", "b": "defaults", "d": "own", "g": "idle"}


def play(way, p90, p99, work, windows=(1000, 1000)):
    fixed = dict.fromkeys(("p50", "busy", "idle", "throttled", "steal"), 1.0)
    return fixed | {"way": way, "p90": p90, "p99": p99, "work": work, "windows": list(windows), "answers": [p90]}


def summary():
    plays = [play("a", 10, 1000, None), play("a", 12, 1200, None), play("b", 60, 9000, 100, (9000, 900)), play("b", 80, 9500, 110, [900] * 6),
             play("d", 11, 1100, 60), play("d", 14, 1150, 65), play("g", 90, 1000, 99), play("g", 95, 1100, 101)]
    return plays, report.summarise(plays, list(TITLES))


class ReportTest(unittest.TestCase):
    def test_a_percentile_is_the_value_below_which_the_part_lies(self):
        self.assertEqual(report.percentile(range(100), 0.99), 99)
        self.assertEqual(report.percentile(range(100), 0.5), 50)
        self.assertEqual(report.percentile([7], 0.99), 7)

    def test_windows_are_seconds_of_intended_times_without_the_first(self):
        answers = [(100, 9), (1_000_000, 1), (1_999_999, 2), (2_000_000, 3)]
        self.assertEqual(report.windows(answers, 1), [[1, 2], [3]])

    def test_one_stall_changes_one_window_and_not_the_p99_of_a_play(self):
        quiet = [(second * 1_000_000 + i, 10) for second in range(6) for i in range(100)]
        stalled = [(at, 50_000) if at // 1_000_000 == 3 else (at, latency) for at, latency in quiet]
        measured = report.latencies(stalled, 1)
        self.assertEqual(measured["p99"], 10)
        self.assertEqual(max(measured["windows"]), 50_000)

    def test_the_order_of_ways_depends_on_seed_and_round_only(self):
        ways = list("abcdefgh")
        self.assertEqual(report.order(ways, 5, 1), report.order(ways, 5, 1))
        self.assertNotEqual(report.order(ways, 5, 1), report.order(ways, 5, 2))
        self.assertNotEqual(report.order(ways, 5, 1), report.order(ways, 6, 1))
        self.assertEqual(sorted(report.order(ways, 5, 1)), ways)

    def test_a_summary_has_medians_ranges_and_the_share_of_bad_windows(self):
        of = summary()[1]
        self.assertEqual(of["b"]["p90"], {"median": 70, "low": 60, "high": 80})
        self.assertEqual(of["b"]["bad"], {"median": 12.5, "low": 0, "high": 50})
        self.assertNotIn("work", of["a"])

    def test_ways_whose_ranges_overlap_rank_equal(self):
        of = summary()[1]
        self.assertEqual(report.ranking(of, "p90"), "a = d < b < g")
        self.assertEqual(report.ranking(of, "work"), "d < g = b")

    def test_losses_name_each_way_that_is_worse_than_the_defaults(self):
        text = report.losses(summary()[1], TITLES, ("b",))
        self.assertIn("p90 of (g) idle by 32 %", text)
        self.assertIn("batch work of (d) own by 40 %", text)
        self.assertNotIn("work of (g)", text)
        self.assertNotIn("p99", text)

    def test_losses_say_so_where_nothing_is_worse(self):
        plays = [play("a", 10, 1000, None), play("b", 60, 9000, 100), play("g", 9, 900, 100)]
        of = report.summarise(plays, ["a", "b", "g"])
        self.assertEqual(report.losses(of, TITLES, ("b", "be")), "Worse than (b) defaults: nothing.")
        self.assertIn("were not played", report.losses(of, TITLES, ("be",)))

    def test_the_table_has_a_row_for_each_way_with_its_ratios(self):
        rows = report.table(summary()[1], TITLES).splitlines()
        self.assertEqual(len(rows), 2 + len(TITLES))
        self.assertIn("12 (11 to 14), 1.14 ×", rows[4])
        self.assertEqual({row.count("|") for row in rows}, {rows[0].count("|")})

    def test_the_picture_is_xml_with_a_dot_for_each_round_and_way(self):
        plays, of = summary()
        root = xml.etree.ElementTree.fromstring(report.picture(plays, of, TITLES))
        circles = root.findall("{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(circles), len(plays) + 2 * len(TITLES))
        for circle in circles:
            self.assertTrue(0 <= float(circle.get("cx")) <= 880 and 0 <= float(circle.get("cy")) <= 460)

    def test_ticks_span_the_values(self):
        self.assertEqual(report.ticks(850, 5400), [500, 1000, 2000, 5000, 10000])


if __name__ == "__main__":
    unittest.main()
