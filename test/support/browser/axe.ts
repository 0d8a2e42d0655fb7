/**
 * What axe finds wrong with a page as it stands: rules of WCAG 2.2 AA and good practice, at both widths and in both themes. The page is
 * not loaded anew for that: its width and its theme are changed in place.
 */
import assert from 'node:assert/strict'
import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

const HEIGHT = 900
const WIDTHS = [1440, 360]

// A theme changes colours and nothing else, so in the dark one only their contrast is looked at.
const LOOK = `(async () => {
  const root = document.documentElement
  const before = root.dataset.theme
  const found = []
  for (const [theme, only] of [['light', null], ['dark', ['color-contrast']]]) {
    root.dataset.theme = theme
    const { violations } = await axe.run({ resultTypes: ['violations'], ...(only !== null && { runOnly: only }) })
    found.push(...violations.map((violation) => ({ ...violation, id: theme + ' ' + violation.id })))
  }
  root.dataset.theme = before
  return found.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) }))
})()`

export async function assertAccessible(page: Page, state: string): Promise<void> {
  assert.deepEqual(await findBarriers(page, state), [])
}

/** All of them, in words; none: the page is for everybody. */
export async function findBarriers(page: Page, state: string): Promise<readonly string[]> {
  // Over the debugger, so that the page's policy against foreign scripts stays as it is.
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(axe.source)
  const told: string[] = []
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: HEIGHT })
    for (const { id, nodes } of await page.evaluate<readonly Violation[]>(LOOK))
      for (const { html, failureSummary = '' } of nodes.slice(0, 3))
        told.push(`${state}, ${width} px, ${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 200)}`)
  }
  await page.setViewportSize({ width: WIDTHS[0], height: HEIGHT })
  return told
}
