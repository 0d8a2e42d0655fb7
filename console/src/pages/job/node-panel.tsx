/** One node: what went in, what came out, how long it took. */
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { JobDetail, NodeSpan } from '../../api/job-detail.ts'
import { Duration } from '../../components/figures.tsx'
import { Icon } from '../../components/icon.tsx'
import { Media } from '../../components/media/media.tsx'
import { Words } from '../../components/words.tsx'
import type { GraphNode } from '../../graph/workflow-graph.ts'
import { setHash } from '../../routes.ts'
import { NodeStateWord } from './node-state.tsx'

interface NodePanelProps {
  readonly node: GraphNode
  readonly detail: JobDetail
  readonly span: NodeSpan | undefined
  readonly onClose: () => void
}

export function NodePanel({ node, detail, span, onClose }: NodePanelProps) {
  const outputs = detail.outputs_list.filter(({ node_id }) => node_id === node.id)
  const isFailed = detail.status === 'failed' && detail.error?.node_id === node.id
  return (
    <aside class="node-panel" aria-label={`Node ${node.id}`}>
      <div class="section-head">
        <h2>
          <Words text={node.title ?? node.classType} />
        </h2>
        <button type="button" class="icon-button" aria-label="Close node" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </div>
      <p class="dim">
        node {node.id} · <Words text={node.classType} />
      </p>
      <p class="row">
        <NodeStateWord state={span?.state ?? 'waiting'} />
        {span?.started_at != null && span.state !== 'cached' && <Duration from={span.started_at} to={span.ended_at} />}
      </p>
      {isFailed && (
        <p class="failed-text">
          <Words text={detail.error?.message ?? ''} />
        </p>
      )}
      <h3>Inputs</h3>
      <dl class="node-inputs">
        {node.inputs.map(({ name, value, link }) => (
          <div key={name}>
            <dt>
              <Words text={name} />
            </dt>
            <dd>
              {link === null ? (
                <Words text={typeof value === 'string' ? value : stringifyLosslessJson(value)} />
              ) : (
                <button
                  type="button"
                  class="link-button"
                  onClick={() => setHash(`graph/${encodeURIComponent(link.from)}`)}
                >
                  from node {link.from}
                </button>
              )}
            </dd>
          </div>
        ))}
      </dl>
      {outputs.length > 0 && (
        <>
          <h3>Outputs</h3>
          <div class="stack">
            {outputs.map((output) => (
              <Media key={output.asset_id} item={output} />
            ))}
          </div>
        </>
      )}
      <p>
        <button type="button" class="link-button" onClick={() => setHash(`logs/${encodeURIComponent(node.id)}`)}>
          Its log lines
        </button>
      </p>
    </aside>
  )
}
