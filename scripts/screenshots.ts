/**
 * `npm run screenshots`: makes the pictures of docs/console.md and the README anew. Starts a service in a temporary folder, gives it
 * realistic work (pictures that it really makes, runs, a queue, failures) and photographs its pages. Needs a Chromium.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { startTestApp } from '../test/support/app/start-app.ts'
import { launchBrowser } from '../test/support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../test/support/browser/console-page.ts'
import { type ConsoleClient, createConsoleClient } from '../test/support/clients/console-client.ts'
import { waitUntil } from '../test/support/wait-until.ts'

const NODES = fileURLToPath(new URL('./screenshots/nodes', import.meta.url))
const PICTURES = fileURLToPath(new URL('../docs/pictures', import.meta.url))
const SIZE = { width: 1200, height: 760 }
const PHONE = { width: 360, height: 720 }
const QUALITY = 78
// A reader of the documentation loads all of them.
const MAX_BYTES = 150_000
const IS_LOADED = `[...document.images].every((image) => image.complete) && document.querySelector('main .skeleton') === null`
const PALETTES = ['dusk', 'dawn', 'forest', 'desert']

const paint = (values: object, prefix: string) => ({
  '1': {
    class_type: 'Landscape',
    inputs: { seed: 7, palette: 'dusk', steps: 12, pause_ms: 0, ...values },
    _meta: { title: 'Paint' },
  },
  '2': {
    class_type: 'ImageBlur',
    inputs: { image: ['1', 0], blur_radius: 1, sigma: 0.4 },
    _meta: { title: 'Soften' },
  },
  '9': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: prefix }, _meta: { title: 'Save' } },
})
const upscale = (tile: number) => ({
  ...paint({ palette: 'forest', seed: 31 }, 'poster'),
  '3': { class_type: 'TiledUpscale', inputs: { image: ['2', 0], factor: 4, tile }, _meta: { title: 'Upscale' } },
  '9': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'poster' }, _meta: { title: 'Save' } },
})

async function fill(client: ConsoleClient): Promise<{ readonly made: string; readonly failed: string }> {
  const ids: string[] = []
  for (let index = 0; index < 12; index++) {
    const graph = paint({ seed: 11 + index * 17, palette: PALETTES[index % PALETTES.length] }, 'postcard')
    ids.push(await client.submit(graph, { metadata: { name: 'postcard', scene: String(index + 1) } }))
  }
  for (const id of ids) await client.untilStatus(id, 'succeeded')
  const failures: string[] = []
  for (const [index, tile] of [4096, 8192, 4096].entries())
    failures.push(await client.submit(upscale(tile), { metadata: { name: 'poster', user: String(index + 7) } }))
  for (const id of failures) await client.untilStatus(id, 'failed')
  const running = [0, 1].map((index) =>
    paint({ seed: 52 + index, palette: PALETTES[index], steps: 24, pause_ms: 900 }, 'scene'),
  )
  for (const [index, graph] of running.entries())
    await client.untilStatus(
      await client.submit(graph, { metadata: { name: 'storyboard', scene: String(index + 1) } }),
      'running',
    )
  for (let index = 0; index < 5; index++)
    await client.submit(paint({ seed: index, steps: 24, pause_ms: 900 }, 'scene'), {
      metadata: { name: index % 2 === 0 ? 'storyboard' : 'poster', scene: String(index + 3) },
    })
  return { made: ids.at(-1) ?? '', failed: failures[0] ?? '' }
}

async function shoot(page: Page, name: string): Promise<void> {
  // Pictures below the fold are loaded late, and the pointer must not light anything up.
  await page.mouse.move(0, 0)
  await page.waitForLoadState('load')
  const bytes = await sharp(await page.screenshot())
    .webp({ quality: QUALITY, effort: 6 })
    .toBuffer()
  if (bytes.length > MAX_BYTES) throw new Error(`${name} has ${bytes.length} bytes: make it smaller`)
  writeFileSync(`${PICTURES}/${name}.webp`, bytes)
  console.log(`docs/pictures/${name}.webp: ${Math.ceil(bytes.length / 1024)} KiB`)
}

/** A workflow on its way to an endpoint, and the endpoint with a picture that it made; also in the dark, on a phone. */
async function takeEndpoints(opened: ConsolePage): Promise<void> {
  const { page } = opened
  await opened.go('/endpoints')
  const buffer = Buffer.from(JSON.stringify(paint({ seed: 71, palette: 'dawn' }, 'postcard')))
  await page
    .locator('main input[type=file]')
    .setInputFiles({ name: 'Landscape.json', mimeType: 'application/json', buffer })
  await page.getByRole('heading', { name: 'Publish a workflow' }).waitFor()
  await page.getByRole('textbox', { name: 'Title', exact: true }).first().fill('A landscape')
  await shoot(page, 'publish')
  await page.getByRole('button', { name: 'Publish', exact: true }).click()
  await page.getByRole('tab', { name: 'Try' }).waitFor()
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  const result = page.getByRole('complementary', { name: 'Result' })
  await result.getByText('Succeeded').waitFor({ timeout: 120_000 })
  await waitUntil(() => page.evaluate<boolean>(IS_LOADED))
  await shoot(page, 'endpoint')
  await page.setViewportSize(PHONE)
  await page.evaluate(`document.documentElement.dataset.theme = 'dark'; window.scrollTo(0, 0)`)
  await shoot(page, 'endpoint-phone')
}

/** The same endpoint on the page of a link, as a visitor sees it. */
async function takeSharePage({ page }: ConsolePage): Promise<void> {
  const wish = { runs: 10, expires_at: new Date(Date.now() + 3_600_000).toISOString() }
  const made = await page.request.post(`${app.url}/api/v2/endpoints/landscape/shares`, { data: wish })
  const { url } = (await made.json()) as { readonly url: string }
  await page.setViewportSize(SIZE)
  await page.goto(url)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.getByRole('region', { name: 'Result' }).getByText('Done').waitFor({ timeout: 120_000 })
  await waitUntil(() => page.evaluate<boolean>(IS_LOADED))
  await shoot(page, 'share')
}

async function takeAll(
  opened: ConsolePage,
  { made, failed }: { readonly made: string; readonly failed: string },
): Promise<void> {
  const { page } = opened
  const loaded = () => waitUntil(() => page.evaluate<boolean>(IS_LOADED))
  const take = async (name: string, path: string, isThere: () => Promise<void>) => {
    await opened.go(path)
    await isThere()
    await loaded()
    await shoot(page, name)
  }
  await page.setViewportSize(SIZE)
  const previews = () =>
    page
      .getByRole('img', { name: /^Preview of/ })
      .nth(1)
      .waitFor()
  await take('home', '/', async () => {
    await previews()
    // Well on their way.
    await page
      .getByText(/^[3-6]\d %$/)
      .first()
      .waitFor()
  })
  await take('job', `/jobs/${failed}`, () => page.getByRole('group', { name: 'Failure' }).waitFor())
  await take('jobs', `/jobs?peek=${made}`, () => page.getByRole('table', { name: 'Jobs' }).waitFor())
  await take('gallery', '/gallery', () =>
    page
      .getByRole('button', { name: /^Look at/ })
      .first()
      .waitFor(),
  )
  await take('run', `/run?from=${made}`, () => page.getByRole('group', { name: /^Paint/ }).waitFor())
  await take('timeline', `/jobs/${made}#timeline`, () => page.getByRole('tabpanel').waitFor())
  await page.evaluate(`document.documentElement.dataset.theme = 'dark'`)
  await take('engines', '/operator/engines', () => page.getByText('Ready').first().waitFor())
  await page.setViewportSize(PHONE)
  await take('phone', '/', previews)
  await page.setViewportSize(SIZE)
  await page.evaluate(`document.documentElement.dataset.theme = 'light'`)
  // Last: its run waits for those that the pictures before show.
  await takeEndpoints(opened)
  await takeSharePage(opened)
}

mkdirSync(PICTURES, { recursive: true })
await using app = await startTestApp({ settings: { nodes: NODES, workers: '2' } })
await using browser = await launchBrowser()
const ids = await fill(createConsoleClient(app.url))
await using opened = await openConsole(browser, app.url)
await takeAll(opened, ids).catch((error: unknown) => {
  // Before anything is closed, which would fail as well and hide the reason.
  console.error(error)
  process.exit(1)
})
opened.assertClean()
