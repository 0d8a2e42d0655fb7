/**
 * The ten tasks of a person at the console, each within its clicks from Home, on a service with 10,000 stored jobs and three ComfyUI
 * servers: in the local kind, some with a token, and in the cloud kind with two accounts; there also with the keyboard alone.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { storedJobId } from '../support/app/stored-jobs.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../support/browser/console-page.ts'
import { type ConsoleWorld, openConsoleWorld, type WorldKind } from '../support/browser/console-world.ts'
import { createKeyboard, createMouse, type Hand } from '../support/browser/hand.ts'
import { call } from '../support/clients/call.ts'
import { waitUntil } from '../support/wait-until.ts'

const KINDS: readonly WorldKind[] = ['local', 'token', 'cloud']
// A token is one account like `local`, behind a sign-in like `cloud`: what is left are a run, a call with the token, and an operator's act.
const WITH_TOKEN = /^(3|8|10: take)/
const CREDIT = /\$\d/

describe('the tasks of the console', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  before(async () => {
    browser = await launchBrowser()
  })
  after(() => browser[Symbol.asyncDispose]())

  for (const kind of KINDS)
    describe(`in the kind ${kind}`, () => {
      let world: ConsoleWorld
      let opened: ConsolePage
      before(async () => {
        world = await openConsoleWorld(kind)
        opened = await openConsole(browser, world.url, { credential: world.credentials })
        await opened.watched.context.grantPermissions(['clipboard-read', 'clipboard-write'])
      })
      after(async () => {
        await opened?.[Symbol.asyncDispose]()
        await world?.[Symbol.asyncDispose]()
      })
      doTasks('mouse', kind, () => ({ world, opened, hand: createMouse(opened.page) }))
      if (kind === 'cloud') doTasks('keyboard', kind, () => ({ world, opened, hand: createKeyboard(opened.page) }))
      test('nothing failed, was refused or was complained of meanwhile', () => opened.assertClean())
    })
})

interface Scene {
  readonly world: ConsoleWorld
  readonly opened: ConsolePage
  readonly hand: Hand
}

/** What a deed leaves in the clipboard, which is written a moment after it. */
async function copiedBy(page: Page, deed: () => Promise<void>): Promise<string> {
  await page.evaluate<void>("navigator.clipboard.writeText('')")
  await deed()
  return await waitUntil(() => page.evaluate<string>('navigator.clipboard.readText()'))
}

/** A task starts at Home; `clicks` is the most that it may take. */
function doTasks(how: string, kind: WorldKind, scene: () => Scene): void {
  const task = (name: string, clicks: number, body: (page: Page, scene: Scene) => Promise<void>) => {
    if (kind === 'token' && !WITH_TOKEN.test(name)) return
    test(`${name} (${how})`, async () => {
      const here = scene()
      await here.opened.go('/')
      await here.opened.page.getByRole('region', { name: 'Running' }).waitFor()
      here.hand.begin()
      await body(here.opened.page, here)
      assert.ok(here.hand.clicks <= clicks, `it took ${here.hand.clicks} clicks, not ${clicks}`)
    })
  }

  task('1: what runs, waits and failed, with live previews', 0, async (page, { world }) => {
    await world.waitWith(`${how} waits`)
    const running = page.getByRole('region', { name: 'Running' })
    await running.getByRole('link', { name: 'portrait', exact: true }).waitFor()
    await running.getByRole('img', { name: 'Preview of portrait' }).waitFor()
    await page
      .getByRole('region', { name: 'Waiting' })
      .getByRole('link', { name: `${how} waits` })
      .waitFor()
    await page.getByRole('region', { name: 'Failed today' }).getByRole('link', { name: 'poster' }).waitFor()
    assert.equal(await page.getByText('a secret of the rival').count(), 0)
  })

  task('2: why a job failed, at which node, what to do, and whether it was charged', 1, async (page, { hand }) => {
    await hand.press(page.getByRole('region', { name: 'Failed today' }).getByRole('link', { name: 'poster' }))
    const failure = page.getByRole('group', { name: 'Failure' })
    await failure.getByText('a tile of 4096 is too large').waitFor()
    await failure.getByText('Next:').waitFor()
    await failure.getByRole('button', { name: /node 2, DemoRaise/ }).waitFor()
    if (kind === 'cloud') await page.getByText(/\$[\d.]+ charged|not charged/).waitFor()
  })

  task('3: a first picture', 1, async (page, { hand }) => {
    await hand.press(page.getByRole('button', { name: 'Run the example' }))
    await page.getByRole('button', { name: /^Enlarge colour-card/ }).waitFor()
  })

  task('4: run it again with another seed', 2, async (page, { hand, world }) => {
    await hand.press(page.getByRole('link', { name: 'Run postcard again' }).first())
    const sampler = page.getByRole('group', { name: /^Sampler/ })
    await hand.fill(sampler.getByRole('textbox', { name: 'seed' }), '43')
    await hand.press(page.getByRole('button', { name: /^Run/ }))
    const result = page.getByRole('complementary', { name: 'Result' })
    await result.getByText('Succeeded').waitFor()
    const href = (await result.getByRole('link', { name: 'Open the job' }).getAttribute('href')) ?? ''
    const workflow = await world.client.workflowOf(href.split('/').at(-1) ?? '')
    assert.equal(workflow['2'].inputs.seed, 43)
  })

  task('6: find a job by id, metadata, error code, node class and weights', 0, async (page, { opened, world }) => {
    const jobs = page.getByRole('table', { name: 'Jobs' })
    for (const [text, name] of [
      [storedJobId(77).slice(0, 13), 'stored 77'],
      ['stored 4711', 'stored 4711'],
      ['out_of_memory', 'stored 10000'],
      ['UltimateSDUpscale', 'stored 10000'],
      ['flux1-dev.safetensors', 'stored 10000'],
    ] as const) {
      await page.keyboard.press('/')
      await page.keyboard.insertText(text)
      await page.keyboard.press('Enter')
      await jobs.getByRole('link', { name, exact: true }).waitFor()
      await opened.go('/')
      await page.getByRole('region', { name: 'Running' }).waitFor()
    }
    // A whole id leads to its job at once.
    await page.keyboard.press('/')
    await page.keyboard.insertText(world.failed)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'poster' }).waitFor()
  })

  task('7: all results of a job as one file', 1, async (page, { hand }) => {
    const downloading = page.waitForEvent('download')
    await hand.press(page.getByRole('link', { name: 'Download all results of postcard' }).first())
    const bytes = await readFile(await (await downloading).path())
    assert.equal(bytes.subarray(0, 2).toString(), 'PK')
  })

  task('8: try a model, its price known before, and take the call along', 3, async (page, { hand, opened }) => {
    await hand.press(page.getByRole('link', { name: 'Models', exact: true }))
    await hand.press(page.getByRole('region', { name: 'sandbox' }).getByRole('link', { name: /^image/ }))
    await hand.fill(page.getByRole('textbox', { name: /^seed/ }), '4711')
    await page.getByRole('status').filter({ hasText: CREDIT }).waitFor()
    assert.equal(hand.clicks, 2)
    await page.keyboard.press('Control+Enter')
    const result = page.getByRole('complementary', { name: 'Result' })
    await result.getByRole('img').first().waitFor()
    const copied = await copiedBy(opened.page, () => hand.press(page.getByRole('button', { name: 'curl' })))
    assert.match(copied, /curl[\s\S]*\/v2\/models\/sandbox\/image[\s\S]*"seed":4711/)
    if (kind !== 'local') assert.match(copied, /\$ATELIER_KEY/)
  })

  if (kind === 'cloud') {
    task('9: who spent what this month, by day, key and pool', 1, async (page, { hand }) => {
      await hand.press(page.getByRole('link', { name: 'Usage of acme' }))
      await page
        .getByRole('img', { name: /Spent by day/ })
        .or(page.getByRole('figure', { name: /Spent by day/ }))
        .waitFor()
      await page.getByRole('navigation', { name: 'By' }).getByRole('link', { name: 'Key' }).waitFor()
    })

    task('10: make a key and hand it over', 3, async (page, { hand, world }) => {
      await hand.command('API keys')
      await hand.press(page.getByRole('button', { name: 'New key' }))
      await hand.fill(page.getByRole('textbox', { name: 'What it is for' }), `key of the ${how}`)
      await hand.press(page.getByRole('button', { name: 'Make the key' }))
      const copy = page.getByRole('dialog').getByRole('button', { name: 'Copy' })
      const secret = await copiedBy(page, () => hand.press(copy))
      const headers = { authorization: `Bearer ${secret}` }
      assert.equal((await call(world.url, '/api/v2/jobs', { headers })).status, 200)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      assert.equal((await page.content()).includes(secret), false)
    })

    task('10: revoke a key', 2, async (page, { hand }) => {
      await hand.command('API keys')
      const row = page.getByRole('listitem').filter({ hasText: `key of the ${how}` })
      await hand.press(row.getByRole('button', { name: 'Revoke' }))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Revoke' }))
      await row.getByText('revoked').waitFor()
    })
  }

  task('10: take an engine out of work safely, and back', 2, async (page, { hand }) => {
    await hand.command('Engines')
    const engine = page.getByRole('article', { name: 'Engine gpu3' })
    await hand.press(engine.getByRole('button', { name: 'Drain…' }))
    await page.getByText('It runs nothing at the moment.').waitFor()
    await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Drain' }))
    await engine.getByRole('button', { name: 'Resume' }).waitFor()
    assert.equal(hand.clicks, 2)
    hand.begin()
    await hand.press(engine.getByRole('button', { name: 'Resume' }))
    await engine.getByText('Ready').waitFor()
  })

  task('5: cancel one', 1, async (page, { hand, world }) => {
    const id = await world.waitWith(`${how} cancels one`)
    const waiting = page.getByRole('region', { name: 'Waiting' })
    await hand.press(waiting.getByRole('button', { name: `Cancel ${how} cancels one` }))
    await world.client.untilStatus(id, 'canceled')
  })

  task('5: cancel all that wait, told their number, and leave what runs', 2, async (page, { hand, world }) => {
    const id = await world.waitWith(`${how} cancels all`)
    await page
      .getByRole('region', { name: 'Waiting' })
      .getByRole('link', { name: `${how} cancels all` })
      .waitFor()
    await hand.press(page.getByRole('button', { name: 'Cancel all that wait…' }))
    await hand.press(page.getByRole('dialog').getByRole('button', { name: /^Cancel \d+ waiting jobs?$/ }))
    await world.client.untilStatus(id, 'canceled')
    await page.getByText('Nothing waits.').waitFor()
    await page.getByRole('region', { name: 'Running' }).getByRole('link', { name: 'portrait', exact: true }).waitFor()
  })
}
