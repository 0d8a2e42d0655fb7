import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fit, hit, layOut, zoomAt } from '../../../console/src/graph/layout.ts'
import { readWorkflow } from '../../../console/src/graph/workflow-graph.ts'
import { toScale, toTicks } from '../../../console/src/pages/job/timeline-scale.ts'
import { addLines } from '../../../console/src/text/log-text.ts'

const graph = fc.integer({ min: 1, max: 40 }).chain((count) =>
  fc.record({
    sizes: fc.array(fc.record({ w: fc.integer({ min: 80, max: 300 }), h: fc.integer({ min: 40, max: 200 }) }), {
      minLength: count,
      maxLength: count,
    }),
    links: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 80 }),
  }),
)

test('no two nodes overlap, whatever the links, cycles and hubs included', () => {
  fc.assert(
    fc.property(graph, (input) => {
      const boxes = layOut(input)
      for (const [index, a] of boxes.entries()) {
        assert.equal(Number.isFinite(a.x) && Number.isFinite(a.y), true)
        for (const b of boxes.slice(index + 1)) {
          const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y + 1e-6 || b.y + b.h <= a.y + 1e-6
          assert.equal(isApart, true, JSON.stringify([a, b]))
        }
      }
    }),
    { numRuns: 300 },
  )
})

test('a node stands right of what feeds it', () => {
  const links = [
    [0, 1],
    [1, 2],
    [0, 2],
    [3, 2],
  ] as const
  const boxes = layOut({ sizes: links.map(() => ({ w: 100, h: 40 })), links })
  for (const [from, to] of links) assert.equal(boxes[from].x + boxes[from].w < boxes[to].x, true)
  assert.equal(boxes[3].x, boxes[1].x)
})

test('zooming keeps the point under the pointer, and a fitted graph is found where it is drawn', () => {
  const camera = { x: 10, y: 20, scale: 0.5 }
  const at = { x: 120, y: 40 }
  const zoomed = zoomAt(camera, 1.7, at)
  assert.deepEqual(
    [zoomed.x + at.x / zoomed.scale, zoomed.y + at.y / zoomed.scale].map((value) => value.toFixed(6)),
    [camera.x + at.x / camera.scale, camera.y + at.y / camera.scale].map((value) => value.toFixed(6)),
  )
  const boxes = [{ x: 0, y: 0, w: 100, h: 50 }]
  assert.equal(hit(fit(boxes, { w: 800, h: 600 }), boxes, { x: 400, y: 300 }), 0)
  assert.equal(hit(fit(boxes, { w: 800, h: 600 }), boxes, { x: 5, y: 5 }), -1)
})

test('a workflow is read without rounding, and what is no node does not hide the others', () => {
  const { nodes, links } = readWorkflow(
    '{"1":{"class_type":"A","inputs":{"seed":18446744073709551615}},"2":{"class_type":"B","inputs":{"x":["1",0],"y":["9",0]}},"z":7}',
  )
  assert.deepEqual(links, [{ from: '1', to: '2' }])
  assert.equal(nodes[0].inputs[0].value, 18_446_744_073_709_551_615n)
  assert.deepEqual(
    nodes.map(({ id }) => id),
    ['1', '2'],
  )
})

test('long idle stretches are drawn short, and time never goes back on the line', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(1_000_000), fc.nat(20_000)), { maxLength: 20 }),
      fc.array(fc.nat(1_100_000), { minLength: 2 }),
      (busy, times) => {
        const stretches = busy.map(([from, ms]) => ({ from, to: from + ms }))
        const scale = toScale(stretches, { from: 0, to: 1_100_000 })
        const places = times.toSorted((a, b) => a - b).map(scale.at)
        for (const [index, place] of places.entries()) {
          assert.equal(place >= 0 && place <= 1, true)
          if (index > 0) assert.equal(place >= places[index - 1] - 1e-9, true)
        }
      },
    ),
  )
  const scale = toScale([{ from: 3_600_000, to: 3_610_000 }], { from: 0, to: 3_610_000 })
  assert.equal(scale.at(3_600_000) < 0.1, true)
  assert.deepEqual(toTicks(8000, 8), [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000])
})

test('lines of a log stand in order, each once, whether they come as pages or one by one', () => {
  const line = (n: number) => ({ n, at: null, node: null, text: String(n) })
  fc.assert(
    fc.property(fc.array(fc.array(fc.nat(50))), (pieces) => {
      let lines: readonly ReturnType<typeof line>[] = []
      for (const piece of pieces) lines = addLines(lines, piece.map(line)) as typeof lines
      assert.deepEqual(
        lines.map(({ n }) => n),
        [...new Set(pieces.flat())].sort((a, b) => a - b),
      )
    }),
  )
})
