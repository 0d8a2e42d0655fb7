/** What axe finds wrong with a page as it stands: rules of WCAG 2.2 AA and good practice. */
import assert from 'node:assert/strict'
import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

export async function assertAccessible(page: Page, state: string): Promise<void> {
  // Over the debugger, so that the page's policy against foreign scripts stays as it is.
  await page.evaluate(axe.source)
  const violations = await page.evaluate<readonly Violation[]>('axe.run().then((found) => found.violations)')
  const told = violations.flatMap(({ id, nodes }) =>
    nodes
      .slice(0, 3)
      .map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 200)}`),
  )
  assert.deepEqual(told, [], `axe on ${state}`)
}
