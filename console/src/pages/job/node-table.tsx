/** The nodes as a table: the equal of the picture, in the same order, with state and time. */
import type { NodeSpan } from '../../api/job-detail.ts'
import { Duration } from '../../components/figures.tsx'
import { TableWrap } from '../../components/table/table-wrap.tsx'
import { Words } from '../../components/words.tsx'
import type { WorkflowGraph } from '../../graph/workflow-graph.ts'
import { NodeStateWord } from './node-state.tsx'

interface NodeTableProps {
  readonly graph: WorkflowGraph
  readonly spans: ReadonlyMap<string, NodeSpan>
  readonly chosen: string | null
  readonly onChoose: (id: string) => void
}

/** More rows than this make the page slow to no use: the picture and its search go on. */
const MAX_ROWS = 500

export function NodeTable({ graph, spans, chosen, onChoose }: NodeTableProps) {
  const rows = graph.nodes.slice(0, MAX_ROWS)
  return (
    <TableWrap label="Nodes">
      <table class="plain-table">
        <caption class="unseen">Nodes</caption>
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col">Title</th>
            <th scope="col" class="class-cell">
              Class
            </th>
            <th scope="col">State</th>
            <th scope="col" class="right">
              Time
            </th>
            <th scope="col" class="right">
              Outputs
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, title, classType }) => {
            const span = spans.get(id)
            return (
              <tr key={id} aria-current={id === chosen ? 'true' : undefined}>
                <td>
                  <button type="button" class="link-button" onClick={() => onChoose(id)}>
                    <Words text={id} />
                  </button>
                </td>
                <td>
                  <Words text={title ?? ''} />
                </td>
                <td class="dim class-cell">
                  <Words text={classType} />
                </td>
                <td>
                  <NodeStateWord state={span?.state ?? 'waiting'} />
                </td>
                <td class="right">
                  {span?.state === 'cached' ? (
                    '–'
                  ) : (
                    <Duration from={span?.started_at ?? null} to={span?.ended_at ?? null} />
                  )}
                </td>
                <td class="right number">{span === undefined || span.outputs === 0 ? '' : span.outputs}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {graph.nodes.length > MAX_ROWS && (
        <p class="dim">
          The first {MAX_ROWS} of {graph.nodes.length}; the search above finds the others.
        </p>
      )}
    </TableWrap>
  )
}
