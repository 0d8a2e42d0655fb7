/** Makes a picture from a ComfyUI graph inside this program: no server, no model weights. The first argument is the folder for it. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { openEngine } from 'atelier/engine'

const graph = {
  sky: { class_type: 'EmptyImage', inputs: { width: 512, height: 384, batch_size: 1, color: 0x3366cc } },
  sun: { class_type: 'EmptyImage', inputs: { width: 128, height: 128, batch_size: 1, color: 0xffcc00 } },
  day: {
    class_type: 'ImageCompositeMasked',
    inputs: { destination: ['sky', 0], source: ['sun', 0], x: 320, y: 64, resize_source: false },
  },
  saved: { class_type: 'SaveImage', inputs: { images: ['day', 0], filename_prefix: 'day' } },
}

const folder = process.argv[2] ?? '.'
await mkdir(folder, { recursive: true })

await using engine = await openEngine()
for await (const event of engine.run(graph)) {
  if (event.type === 'failed') throw new Error(event.failure.message)
  if (event.type !== 'node_report') continue
  for (const item of event.report.images ?? []) {
    if (item.kind !== 'file') continue
    const file = path.join(folder, item.filename)
    await writeFile(file, item.read())
    console.log(file)
  }
}
