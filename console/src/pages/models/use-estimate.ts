/** What a call would cost, asked a moment after the last key. */
import { useEffect, useState } from 'preact/hooks'
import { type Estimate, estimateModel } from '../../api/models.ts'
import { formatUsd } from '../../text/format.ts'

const PAUSE_MS = 400

/** null: the input is not whole yet. */
export function useEstimate(id: string, inputText: string | null): string {
  const [shown, setShown] = useState('')
  useEffect(() => {
    if (inputText === null) return setShown('')
    let isGone = false
    const show = (text: string) => !isGone && setShown(text)
    const timer = setTimeout(() => {
      estimateModel(id, inputText).then(
        (estimate) => show(priceText(estimate)),
        () => show(''),
      )
    }, PAUSE_MS)
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [id, inputText])
  return shown
}

function priceText({ source, amount, min_amount: least, max_amount: most }: Estimate): string {
  if (source === 'exact' && amount !== undefined) return formatUsd(amount)
  if (source === 'estimated' && least !== undefined && most !== undefined)
    return `${formatUsd(least)} to ${formatUsd(most)}`
  return 'price not known before the run'
}
