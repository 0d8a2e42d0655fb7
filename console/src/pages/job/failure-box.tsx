/** Why it failed: the message, the node, what to do next, and whether others failed so. */
import type { JobDetail } from '../../api/job-detail.ts'
import { Icon } from '../../components/icon.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf, setHash } from '../../routes.ts'
import { plural } from '../../text/format.ts'
import { nextStep } from './next-step.ts'

export function FailureBox({ detail }: { readonly detail: JobDetail }) {
  const { error } = detail
  if (error === null) return null
  const advice = nextStep(error.code)
  return (
    <div class="failure" role="group" aria-label="Failure">
      <p class="failure-message">
        <Icon name="warn" />
        <span>
          <Words text={error.message} />
        </span>
      </p>
      <p class="failure-line">
        {error.node_id !== null && (
          <span>
            at{' '}
            <button
              type="button"
              class="link-button"
              onClick={() => setHash(`graph/${encodeURIComponent(error.node_id ?? '')}`)}
            >
              node {error.node_id}
              {error.class_type !== null && `, ${error.class_type}`}
            </button>
          </span>
        )}
        <span class="chip">{error.code}</span>
        {(error.others_with_code ?? 0) > 0 && (
          <a href={hrefOf(`/jobs?status=failed&since=7d&code=${encodeURIComponent(error.code)}`)}>
            {plural(error.others_with_code ?? 0, 'other')} this week →
          </a>
        )}
      </p>
      {advice !== null && <p class="failure-advice">Next: {advice}</p>}
      {error.traceback !== null && error.traceback !== '' && (
        <details>
          <summary>Traceback</summary>
          <pre class="media-text" tabIndex={0} aria-label="Traceback">
            <Words text={error.traceback} isBlock />
          </pre>
        </details>
      )}
    </div>
  )
}
