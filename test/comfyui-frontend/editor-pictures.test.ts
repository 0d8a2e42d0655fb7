/** ComfyUI's own editor over the built-in engine: templates, pictures, uploads, masks and subgraphs are real. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser } from '../support/browser/browser.ts'
import {
  EDITOR_SETTINGS,
  type EditorPage,
  openEditor,
  PATIENCE_MS,
  withoutEditor,
} from '../support/browser/editor-page.ts'
import { waitUntil } from '../support/wait-until.ts'

const GRAPH = {
  '1': { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: 255 } },
  '2': { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
  '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'shown' } },
}
const LOAD = {
  '1': { class_type: 'LoadImage', inputs: { image: '' } },
  '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
}
const TEMPLATES = [
  {
    moduleName: 'default',
    title: 'Of this test',
    type: 'image',
    templates: [{ name: 'mine', title: 'Mine', mediaType: 'image', mediaSubtype: 'webp', description: 'A template' }],
  },
]
const TEMPLATE = {
  version: 0.4,
  last_node_id: 1,
  last_link_id: 0,
  nodes: [
    {
      ...{ id: 1, type: 'EmptyImage', pos: [100, 100], size: [270, 130], flags: {}, order: 0, mode: 0 },
      ...{ inputs: [], outputs: [{ name: 'IMAGE', type: 'IMAGE', links: null }], properties: {} },
      widgets_values: [32, 32, 1, 0],
    },
  ],
  links: [],
  groups: [],
  config: {},
  extra: {},
}

describe("ComfyUI's editor with pictures", { skip: withoutEditor, timeout: 5 * PATIENCE_MS }, () => {
  let folder: string
  let picture: Buffer
  let service: TestApp
  let url: string
  let browser: TestBrowser
  let editor: EditorPage

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'atelier-templates-'))
    picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'green' } })
      .png()
      .toBuffer()
    await writeFile(path.join(folder, 'index.json'), JSON.stringify(TEMPLATES))
    await writeFile(path.join(folder, 'mine.json'), JSON.stringify(TEMPLATE))
    await writeFile(path.join(folder, 'mine-1.webp'), await sharp(picture).webp().toBuffer())
    service = await startTestApp({ settings: { ...EDITOR_SETTINGS, comfyuiTemplates: folder } })
    url = service.app.frontendUrl as string
    browser = await launchBrowser()
    editor = await openEditor(browser, url)
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = service
    await browser?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const countDone = async () => {
    const answer = await fetch(`${url}/api/jobs?limit=100&status=completed`)
    return ((await answer.json()) as { readonly jobs: readonly unknown[] }).jobs.length
  }

  test('templates dialog: the first visit opens it, and a template of the user opens as a graph', async () => {
    // It opens at the editor's own first category, which this folder does not have.
    await editor.page.getByRole('dialog').getByText('All Templates').first().click()
    await editor.page.getByTestId('template-workflow-mine').click()
    await editor.until('app.graph.nodes.some(({ type }) => type === "EmptyImage")')
  })

  test('gallery: a saved picture is among the assets, and is loaded once however often it is shown', async () => {
    await editor.page.keyboard.press('Escape')
    await editor.load(GRAPH, 'gallery')
    await editor.run.click()
    await waitUntil(async () => (await countDone()) === 1)
    const open = () => editor.page.locator('.assets-tab-button').click()
    await open()
    const shown =
      '[...document.querySelectorAll("img")].some(({ src, naturalWidth }) => src.includes("/api/view") && src.includes("shown") && naturalWidth > 0)'
    await editor.until(shown)
    await open()
  })

  test('subgraph: nodes that were folded into one still run', async () => {
    const done = await countDone()
    await editor.load(GRAPH, 'subgraph')
    await editor.ask(`{
      const inner = app.graph.nodes.filter(({ type }) => type !== 'SaveImage')
      app.graph.convertToSubgraph(new Set(inner))
    }`)
    assert.equal(await editor.ask('app.graph.nodes.length'), 2)
    await editor.run.click()
    await waitUntil(async () => (await countDone()) === done + 1)
  })

  test('upload: a picture that is chosen becomes the input of its node', async () => {
    await editor.load(LOAD, 'upload')
    const choosing = editor.page.waitForEvent('filechooser')
    const isOpened = editor.ask(`{
      const [{ widgets }] = app.graph.nodes.filter(({ type }) => type === 'LoadImage')
      widgets.find(({ name }) => name === 'upload').callback()
    }`)
    const chooser = await choosing
    await isOpened
    await chooser.setFiles({ name: 'chosen.png', mimeType: 'image/png', buffer: picture })
    await editor.until(
      'app.graph.nodes.find(({ type }) => type === "LoadImage").widgets.find(({ name }) => name === "image").value === "chosen.png"',
    )
    // The node shows the name before the upload has ended.
    const view = () => fetch(`${url}/api/view?filename=chosen.png&type=input`)
    await waitUntil(async () => (await view()).ok)
    const stored = await view()
    assert.deepEqual(
      [stored.status, stored.headers.get('content-type'), stored.headers.get('cache-control')],
      [200, 'image/png', 'private, no-cache'],
    )
    assert.equal((await sharp(Buffer.from(await stored.arrayBuffer())).metadata()).width, 64)
  })

  test('mask editor: what is painted over the picture is kept as its mask', async () => {
    await editor.until('app.graph.nodes.find(({ type }) => type === "LoadImage").imgs?.[0]?.naturalWidth > 0')
    await editor.ask(`{
      app.canvas.selectItems(app.graph.nodes.filter(({ type }) => type === 'LoadImage'))
      app.extensionManager.command.execute('Comfy.MaskEditor.OpenMaskEditor')
    }`)
    const dialog = editor.page.locator('.mask-editor-dialog')
    const zone = dialog.getByTestId('pointer-zone')
    await zone.waitFor()
    const box = await zone.boundingBox()
    assert.ok(box !== null)
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    await editor.page.mouse.move(x - 40, y)
    await editor.page.mouse.down()
    await editor.page.mouse.move(x + 40, y, { steps: 5 })
    await editor.page.mouse.up()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await editor.until(
      '/clipspace/.test(app.graph.nodes.find(({ type }) => type === "LoadImage").widgets.find(({ name }) => name === "image").value)',
    )
    const done = await countDone()
    await editor.run.click()
    await waitUntil(async () => (await countDone()) === done + 1)
    editor.assertClean()
  })
})
