/** The files that the graph of a job names. */
import type { JobDetail } from '../../api/job-detail.ts'
import { formatBytes } from '../../text/format.ts'
import { Words } from '../words.tsx'

interface InputFilesProps {
  readonly job: Pick<JobDetail, 'inputs' | 'are_inputs_cut'>
  /** Their bytes are the account's own. */
  readonly isOwn: boolean
}

export function InputFiles({ job: { inputs, are_inputs_cut: areCut }, isOwn }: InputFilesProps) {
  return (
    <>
      {inputs.length === 0 && <p class="dim">no files</p>}
      <ul class="plain-list">
        {inputs.map((input) => (
          <li key={input.name}>
            {input.url === null || !isOwn ? (
              <Words text={input.name} />
            ) : (
              <a href={`${input.url}?download=1`} download>
                <Words text={input.name} />
              </a>
            )}
            <span class="dim">
              {[input.content_type, input.size_bytes === null ? null : formatBytes(input.size_bytes)]
                .filter((part) => part !== null)
                .join(' · ')}
            </span>
          </li>
        ))}
      </ul>
      {areCut && <p class="dim">… and more</p>}
    </>
  )
}
