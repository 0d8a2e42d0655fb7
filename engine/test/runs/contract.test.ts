/** The promises of every engine, kept by the built-in one. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describeEngine } from '../../../test/contracts/engine.ts'
import { openTestEngine } from '../support/harness.ts'

const path = fileURLToPath(new URL('../../../test/fixtures/recordings/test.png', import.meta.url))

describeEngine('the built-in one', async () => {
  const opened = await openTestEngine()
  return {
    engine: opened.engine,
    picture: {
      hash: 'the test picture',
      sizeBytes: readFileSync(path).length,
      contentType: 'image/png',
      localPath: path,
      async *read() {
        yield readFileSync(path)
      },
    },
    slowGraph(seed) {
      const blur = (from: string) => ({
        class_type: 'ImageBlur',
        inputs: { image: [from, 0], blur_radius: 31, sigma: 5 },
      })
      return {
        '1': { class_type: 'EmptyImage', inputs: { width: 1_024, height: 1_024, batch_size: 1, color: seed } },
        '2': blur('1'),
        '3': blur('2'),
        '4': blur('3'),
        '5': { class_type: 'PreviewImage', inputs: { images: ['4', 0] } },
      }
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
})
