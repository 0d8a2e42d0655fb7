/** Ten image workflows from file to file, in megapixels per second. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openBenchEngine } from '../kit/engine.ts'
import type { Figure } from '../kit/figure.ts'
import { IMAGE_WORKFLOWS, type ImageWorkflow, SIDE } from '../kit/image-workflows.ts'
import { makeMask, makePhoto } from '../kit/photo.ts'

const ROUNDS = 5

async function writePictures(folder: string): Promise<Record<string, string>> {
  const pictures = {
    'first.png': await makePhoto({ side: SIDE, seed: 1 }),
    'second.png': await makePhoto({ side: SIDE, seed: 2 }),
    'half.png': await makePhoto({ side: SIDE / 2, seed: 3 }),
    'mask.png': await makeMask(SIDE),
  }
  const paths: Record<string, string> = {}
  for (const [name, bytes] of Object.entries(pictures)) {
    paths[name] = join(folder, name)
    writeFileSync(paths[name], bytes)
  }
  return paths
}

function toFigure({ name, images, megapixelsPerSecond }: ImageWorkflow, times: number[]): Figure {
  const sorted = times.toSorted((a, b) => a - b)
  const megapixels = (images * SIDE * SIDE) / 1e6
  return {
    name: `image workflow: ${name}`,
    measured: (megapixels * 1000) / sorted[Math.floor(ROUNDS / 2)],
    unit: 'MP/s',
    bar: megapixelsPerSecond,
    direction: 'at_least',
    detail: { medianMs: sorted[Math.floor(ROUNDS / 2)], fastestMs: sorted[0], rounds: ROUNDS },
  }
}

export async function images(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'atelier-bench-'))
  try {
    await using opened = await openBenchEngine(await writePictures(folder))
    const times = new Map(IMAGE_WORKFLOWS.map(({ name }) => [name, [] as number[]]))
    // Rounds over all workflows, so that a slow minute of the machine hits them alike; the first one warms up.
    for (let round = 0; round <= ROUNDS; round++) {
      for (const { name, graph } of IMAGE_WORKFLOWS) {
        const ms = await opened.time(graph)
        if (round > 0) times.get(name)?.push(ms)
      }
    }
    return IMAGE_WORKFLOWS.map((workflow) => toFigure(workflow, times.get(workflow.name) ?? []))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
