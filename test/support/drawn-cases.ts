/** How many cases a test draws at random: enough for every run, or so many times more for a long search (`ATELIER_TEST_DRAWS=25`). */
export function drawnCases(usual: number): number {
  return usual * Number(process.env['ATELIER_TEST_DRAWS'] ?? 1)
}
