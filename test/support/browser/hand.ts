/**
 * How a person does a task: with the mouse, whose clicks are counted, or with the keyboard alone. Tasks are written once, for either.
 */
import assert from 'node:assert/strict'
import type { ElementHandle, Locator, Page } from 'playwright-core'

export interface Hand {
  /** Clicks, or presses of Enter on what has the focus, since the task began. */
  readonly clicks: number
  press(target: Locator): Promise<void>
  fill(target: Locator, text: string): Promise<void>
  /** Opens a place by its name among the commands, which takes no click. */
  command(name: string): Promise<void>
  begin(): void
}

// More than any page has: a target that is not reached by then is not reached at all.
const MAX_TABS = 250

export function createMouse(page: Page): Hand {
  let clicks = 0
  return {
    get clicks() {
      return clicks
    },
    async press(target) {
      clicks++
      await target.click()
    },
    fill: (target, text) => target.fill(text),
    command: (name) => runCommand(page, name),
    begin() {
      clicks = 0
    },
  }
}

export function createKeyboard(page: Page): Hand {
  let presses = 0
  async function reach(target: Locator): Promise<void> {
    // To look for the target by its role takes far longer than a key; a page that has drawn it anew is looked through again.
    let handle = await found(target)
    for (let tabs = 0; tabs < MAX_TABS; tabs++) {
      const state = await handle.evaluate(({ ownerDocument, isConnected }, element) => {
        if (!isConnected) return 'gone'
        return ownerDocument.activeElement === element ? 'there' : 'elsewhere'
      }, handle)
      if (state === 'there') return
      if (state === 'gone') handle = await found(target)
      else await page.keyboard.press('Tab')
    }
    assert.fail(`the key Tab does not lead to ${target}`)
  }
  return {
    get clicks() {
      return presses
    },
    async press(target) {
      await reach(target)
      presses++
      await page.keyboard.press('Enter')
    },
    async fill(target, text) {
      await reach(target)
      await page.keyboard.press('Control+a')
      await page.keyboard.insertText(text)
    },
    command: (name) => runCommand(page, name),
    begin() {
      presses = 0
    },
  }
}

async function found(target: Locator): Promise<ElementHandle> {
  await target.waitFor()
  return (await target.elementHandle()) as ElementHandle
}

async function runCommand(page: Page, name: string): Promise<void> {
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Command' })
  // It has the focus a moment after it is there; keys before that are the page's.
  await field.and(page.locator(':focus')).waitFor()
  await page.keyboard.type(name)
  await page.getByRole('option', { selected: true }).filter({ hasText: name }).waitFor()
  await page.keyboard.press('Enter')
  await field.waitFor({ state: 'detached' })
}
