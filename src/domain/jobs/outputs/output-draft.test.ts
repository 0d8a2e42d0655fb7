import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReportedItem } from '../../../../engine/graph/run-event.ts'
import { type OutputDraft, toOutputDraft } from './run-outputs.ts'

const RULES = { previewOutputs: false }

function fromFile(key: string, filename: string, contentType: string | null = null): OutputDraft | null {
  const item: ReportedItem = { kind: 'file', filename, subfolder: '', folder: 'output', contentType, async *read() {} }
  return toOutputDraft({ nodeId: '9', key, index: 0, item }, RULES)
}

function fromValue(key: string, value: unknown, nodeId = '9'): OutputDraft | null {
  return toOutputDraft({ nodeId, key, index: 2, item: { kind: 'value', value } }, RULES)
}

async function read(draft: OutputDraft | null): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of draft?.read() ?? []) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

test('the key, the media type and the extension decide the type of a file', () => {
  const table: [key: string, filename: string, contentType: string | null, type: string][] = [
    ['images', 'a.png', null, 'image'],
    ['images', 'a.mp4', null, 'video'],
    ['images', 'a.bin', 'video/webm', 'video'],
    ['images', 'a.unknown', null, 'image'],
    ['images', 'a.gif', null, 'image'],
    ['gifs', 'a.mp4', null, 'video'],
    ['gifs', 'a.gif', 'image/gif', 'video'],
    ['audio', 'a.flac', null, 'audio'],
    ['latents', 'a.latent', null, 'latent'],
    ['files', 'a.txt', null, 'file'],
    ['text', 'a.txt', null, 'text'],
    ['text', 'a.dat', null, 'text'],
    ['video', 'a.mov', null, 'video'],
    ['3d', 'a.glb', null, 'file'],
    ['result', 'a.png', null, 'image'],
    ['a_images', 'a.png', null, 'image'],
    ['custom', 'a.latent', null, 'latent'],
    ['custom', 'a', null, 'file'],
  ]
  for (const [key, filename, contentType, type] of table) {
    assert.equal(fromFile(key, filename, contentType)?.type, type, `${key} ${filename}`)
  }
})

test('the content type is what the engine says, else what the name says, else octets', () => {
  assert.equal(fromFile('images', 'a.png', 'image/x-special')?.contentType, 'image/x-special')
  assert.equal(fromFile('images', 'a.png', 'not a type')?.contentType, 'image/png')
  assert.equal(fromFile('images', 'a')?.contentType, 'application/octet-stream')
})

test('only the base name of a path travels on', () => {
  assert.equal(fromFile('images', '/srv/out/deep/a.png')?.name, 'a.png')
  assert.equal(fromFile('images', 'C:\\out\\a.png')?.name, 'a.png')
  assert.equal(fromFile('images', '../..')?.name, '9_images_1')
  assert.equal(fromFile('images', 'a\n\u0000b.png')?.name, 'ab.png')
  const long = fromFile('images', `${'x'.repeat(400)}.png`)?.name ?? ''
  assert.ok(long.length === 255 && long.endsWith('x.png'))
})

test('strings become text files, everything else JSON, exactly', async () => {
  const text = fromValue('text', 'grüße')
  assert.deepEqual([text?.name, text?.type, text?.contentType], ['9_text_3.txt', 'text', 'text/plain'])
  assert.equal(await read(text), 'grüße')
  for (const [value, written] of [
    [18_446_744_073_709_551_615n, '18446744073709551615'],
    [1.5, '1.5'],
    [null, 'null'],
    [{ a: [true] }, '{"a":[true]}'],
    [undefined, 'null'],
  ]) {
    const draft = fromValue('value', value)
    assert.deepEqual(
      [draft?.name, draft?.contentType, await read(draft)],
      ['9_value_3.json', 'application/json', written],
    )
  }
})

test('a value that is no JSON is still shown', async () => {
  const loop: Record<string, unknown> = {}
  loop['self'] = loop
  assert.equal(await read(fromValue('data', loop)), '"[object Object]"')
})

test('names made from node ids and keys are plain', () => {
  assert.equal(fromValue('../evil key', 'x', '12:7/3')?.name, '12_7_3_.._evil_key_3.txt')
})

test('flags beside an image are no outputs, but an odd value under that key is', () => {
  assert.equal(fromValue('animated', false), null)
  assert.equal(fromValue('animated', 'yes')?.type, 'text')
})

test('temporary files are kept, and listed as outputs only where the operator wants it', () => {
  const item: ReportedItem = {
    kind: 'file',
    filename: 'p.png',
    subfolder: '',
    folder: 'temp',
    contentType: null,
    async *read() {},
  }
  const reported = { nodeId: '1', key: 'images', index: 0, item }
  assert.equal(toOutputDraft(reported, RULES)?.location?.isUnlisted, true)
  assert.equal(toOutputDraft(reported, { previewOutputs: true })?.location?.isUnlisted, false)
})
