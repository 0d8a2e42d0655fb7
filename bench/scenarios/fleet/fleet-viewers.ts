/** A thousand viewers of one job: how many sockets its ComfyUI server sees. */

import { startFleetApp } from '../../../test/support/app/fleet-app.ts'
import { openEvents } from '../../../test/support/clients/event-reader.ts'
import type { Figure } from '../../kit/figure.ts'

const VIEWERS = 1000

export async function fleetViewers(): Promise<Figure[]> {
  await using app = await startFleetApp({ servers: [{}], bounds: { stallMs: null, socketSilenceMs: 60_000 } })
  const [fake] = app.fakes
  fake.hold('running')
  const id = await app.submit({
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
  })
  await fake.held('running')
  const readers = Array.from({ length: VIEWERS }, () => openEvents(app.url, `/api/v2/jobs/${id}/events`))
  await Promise.all(readers.map(({ head }) => head))
  fake.release('running')
  const ends = await Promise.all(readers.map((reader) => reader.rest()))
  const served = ends.filter((frames) => frames.at(-1)?.data.status === 'succeeded').length
  return [
    {
      name: `sockets at the server for ${VIEWERS} viewers of one job`,
      measured: served === VIEWERS ? fake.sockets.peak : Number.POSITIVE_INFINITY,
      unit: 'sockets',
      bar: 1,
      direction: 'at_most',
      detail: { served, opened: fake.sockets.total },
    },
  ]
}
