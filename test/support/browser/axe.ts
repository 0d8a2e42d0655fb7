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
/** The wide one first. */
export const WIDTHS: readonly number[] = [1440, 360]

// A theme changes colours and nothing else, so in the dark one only their contrast is looked at: the most expensive of the rules.
const WITH_CONTRAST = [
  ['light', {}],
  ['dark', { runOnly: ['color-contrast'] }],
]
const WITHOUT_CONTRAST = [['light', { rules: { 'color-contrast': { enabled: false } } }]]

const lookFor = (looks: object) => `(async () => {
  const root = document.documentElement
  const before = root.dataset.theme
  const found = []
  for (const [theme, options] of ${JSON.stringify(looks)}) {
    root.dataset.theme = theme
    const { violations } = await axe.run({ resultTypes: ['violations'], ...options })
    found.push(...violations.map((violation) => ({ ...violation, id: theme + ' ' + violation.id })))
  }
  root.dataset.theme = before
  return found.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) }))
})()`

export async function assertAccessible(page: Page, state: string): Promise<void> {
  assert.deepEqual(await findBarriers(page, state), [])
}

/**
 * All of them, in words; none: the page is for everybody. The colours of a page are the same at both widths, only what frames all pages
 * differs: whoever looks at many asks for contrast at both widths once.
 */
export async function findBarriers(
  page: Page,
  state: string,
  { contrastAt = WIDTHS }: { readonly contrastAt?: readonly number[] } = {},
): Promise<readonly string[]> {
  // Over the debugger, so that the page's policy against foreign scripts stays as it is.
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(axe.source)
  const told: string[] = []
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: HEIGHT })
    const looks = contrastAt.includes(width) ? WITH_CONTRAST : WITHOUT_CONTRAST
    for (const { id, nodes } of await page.evaluate<readonly Violation[]>(lookFor(looks)))
      for (const { html, failureSummary = '' } of nodes.slice(0, 3))
        told.push(`${state}, ${width} px, ${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 200)}`)
  }
  await page.setViewportSize({ width: WIDTHS[0], height: HEIGHT })
  return told
}
