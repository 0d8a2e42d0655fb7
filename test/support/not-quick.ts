/**
 * Called by whatever `npm test` does without. A test that needs it belongs to `npm run test:all`: its file or folder is then named in
 * `LEFT_TO_ALL` of scripts/test-sets.ts.
 */
export function refuseInQuickRun(what: string): void {
  if (process.env['ATELIER_TEST_QUICK'] !== '1') return
  throw new Error(
    `This test needs ${what}, which \`npm test\` does without: list it in LEFT_TO_ALL of scripts/test-sets.ts.`,
  )
}
