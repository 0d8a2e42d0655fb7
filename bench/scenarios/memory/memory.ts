/** Two hundred jobs of 2048 by 2048 pixels, one after the other through the whole service: memory must not creep. */

import { submitJob, waitForEnd } from '../../kit/client-steps.ts'
import type { Figure } from '../../kit/figure.ts'
import { forkServer } from '../../kit/server-child.ts'
import { memoryOfJobs } from './memory-jobs.ts'

const JOBS = 200
// Warm-up jobs, until the caches are full.
const WARM_UP = 40
const SAMPLE_EVERY = 5
const SIDE = 2048

/** Differs from job to job, so that every one of them computes and allocates. */
function workflow(index: number): object {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: SIDE, height: SIDE, batch_size: 1, color: index * 65_793 } },
    '2': { class_type: 'ImageBlur', inputs: { image: ['1', 0], blur_radius: 3, sigma: 1 } },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'bench' } },
  }
}

export async function memory(): Promise<Figure[]> {
  return [...(await memoryOfPictures()), ...(await memoryOfJobs())]
}

async function memoryOfPictures(): Promise<Figure[]> {
  await using atelier = await forkServer('bench/servers/atelier.ts', { engineMemory: '1GiB' })
  const samples: number[] = []
  for (let index = 0; index < WARM_UP + JOBS; index++) {
    const job = await submitJob(atelier.url, workflow(index))
    await waitForEnd(atelier.url, job.id)
    if (index >= WARM_UP && index % SAMPLE_EVERY === 0) samples.push((await atelier.usage()).rssBytes)
  }
  const [least, most] = [Math.min(...samples), Math.max(...samples)]
  const inMebibytes = (bytes: number) => Math.round(bytes / 1_048_576)
  return [
    {
      name: `resident memory over ${JOBS} jobs of ${SIDE} x ${SIDE}, most above least`,
      measured: most / least - 1,
      unit: '%',
      bar: 0.1,
      direction: 'at_most',
      detail: { leastMiB: inMebibytes(least), mostMiB: inMebibytes(most), samplesMiB: samples.map(inMebibytes) },
    },
  ]
}
