/** Names, numbers, bytes and metadata of saved images. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import sharp from 'sharp'
import { bytesOf, filesOf, type GraphJson, lastOf, openTestEngine, type TestEngine } from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine()
})
after(() => engine[Symbol.asyncDispose]())

let color = 0
/** Every graph is new to the cache unless a test repeats it. */
function saving(prefix: string, batch = 1): GraphJson {
  color += 1
  return {
    1: { class_type: 'EmptyImage', inputs: { width: 5, height: 3, batch_size: batch, color } },
    2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: prefix } },
  }
}

/** The tEXt chunks of a PNG, in order. */
function textChunks(png: Buffer): [string, string][] {
  const found: [string, string][] = []
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) !== 'tEXt') continue
    const [key, value] = png.toString('latin1', at + 8, at + 8 + png.readUInt32BE(at)).split('\0')
    found.push([key, value])
  }
  return found
}

const names = async (graph: GraphJson) =>
  filesOf(await engine.run(graph), '2').map(({ filename, subfolder }) => `${subfolder}|${filename}`)

test('numbers count on within one name, over batches and jobs', async () => {
  assert.deepEqual(await names(saving('count', 2)), ['|count_00001_.png', '|count_00002_.png'])
  assert.deepEqual(await names(saving('count')), ['|count_00003_.png'])
  assert.deepEqual(await names(saving('sub/count')), ['sub|count_00001_.png'])
})

test('tokens in the prefix are filled in', async () => {
  const [name] = await names(saving('%year%-%month%-%day%/%hour%%minute%%second%_%width%x%height%_%other%'))
  assert.equal(name, '2031-01-02|120304_5x3_%other%_00001_.png')
})

test('a name that counts its images itself starts anew every time, as in ComfyUI', async () => {
  const wanted = ['|b0_00001_.png', '|b1_00002_.png']
  assert.deepEqual(await names(saving('b%batch_num%', 2)), wanted)
  assert.deepEqual(await names(saving('b%batch_num%', 2)), wanted)
})

for (const prefix of ['../x', 'a/../../x', '/x', 'C:\\x', '..\\x']) {
  test(`the prefix ${JSON.stringify(prefix)} is refused without showing a path`, async () => {
    const { failure } = lastOf(await engine.run(saving(prefix)), 'failed')
    assert.equal(failure.exceptionType, 'Exception')
    assert.equal(failure.message, '**** ERROR: Saving image outside the output folder is not allowed.')
    assert.doesNotMatch(failure.traceback ?? '', /(?:^|\s)\//)
  })
}

test('a prefix may go up as long as it stays inside', async () => {
  assert.deepEqual(await names(saving('a/../c/x')), ['c|x_00001_.png'])
  // As in ComfyUI, whose name for the folder itself is a dot.
  assert.deepEqual(await names(saving('a/..')), ['|._00001_.png'])
})

test('the file remembers the graph and the workflow, in ASCII, and reads back exactly', async () => {
  const graph: GraphJson = {
    ...saving('meta'),
    3: { class_type: 'PrimitiveInt', inputs: { value: 18446744073709551615n } },
    4: { class_type: 'PrimitiveString', inputs: { value: 'naïve "日本" \u{1f600}' } },
  }
  const workflow = { title: 'Bäume', zoom: 1.5 }
  const [file] = filesOf(await engine.run(graph, { extraPngInfo: { workflow } }), '2')
  const png = await bytesOf(file)
  const [prompt, extra, ...others] = textChunks(png)
  assert.deepEqual([prompt[0], extra[0], others.length], ['prompt', 'workflow', 0])
  assert.equal(extra[1], '{"title": "B\\u00e4ume", "zoom": 1.5}')
  assert.match(prompt[1], /"value": 18446744073709551615/)
  assert.match(prompt[1], /na\\u00efve \\"\\u65e5\\u672c\\" \\ud83d\\ude00/)
  assert.equal(JSON.parse(prompt[1])['4'].inputs.value, 'naïve "日本" \u{1f600}')
})

test('pixels are truncated to 8 bit and survive the way through the file', async () => {
  const [file] = filesOf(await engine.run(saving('pixels')), '2')
  const { data, info } = await sharp(await bytesOf(file))
    .raw()
    .toBuffer({ resolveWithObject: true })
  assert.deepEqual([info.width, info.height, info.channels], [5, 3, 3])
  assert.deepEqual([...data.subarray(0, 3)], [(color >> 16) & 255, (color >> 8) & 255, color & 255])
})

test('a cached save gives the old name and the same bytes again, and takes no new number', async () => {
  const graph = saving('again')
  const first = await engine.run(graph)
  const second = await engine.run(graph)
  const [a, b] = [filesOf(first, '2')[0], filesOf(second, '2')[0]]
  assert.equal(lastOf(second, 'node_report').cached, true)
  assert.equal(b.filename, a.filename)
  assert.deepEqual(await bytesOf(b), await bytesOf(a))
  assert.deepEqual(await names(saving('again')), ['|again_00002_.png'])
})

test('an image of another number of channels is refused in the words of the original', async () => {
  const graph: GraphJson = {
    1: { class_type: 'TestMask', inputs: { value: 0.5, width: 4, height: 4 } },
    2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'mask' } },
  }
  const { failure } = lastOf(await engine.run(graph), 'failed')
  assert.equal(failure.exceptionType, 'RuntimeError')
  assert.match(failure.message, /expected 4 dimensions/)
})
