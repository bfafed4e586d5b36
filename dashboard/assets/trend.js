// Draws the values of each run as lines: one plot for each element with `data-lines`.
'use strict'

for (const target of document.querySelectorAll('[data-lines]')) {
  const lines = JSON.parse(target.dataset.lines)
  const runs = lines[0].map((_, index) => index + 1)
  let plot = null

  const draw = () => {
    const style = getComputedStyle(document.documentElement)
    const color = name => style.getPropertyValue(name).trim()
    const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line') } }
    plot?.destroy()
    plot = new uPlot({
      width: target.clientWidth,
      height: 240,
      cursor: { show: false },
      legend: { show: false },
      scales: {
        x: { time: false, range: (_, low, high) => low === high ? [low - 1, high + 1] : [low, high] },
        y: { range: [0, 105] }
      },
      axes: [{ ...axis, incrs: [1, 2, 5, 10, 20] }, axis],
      series: [{}, ...lines.map((_, index) => ({
        stroke: color(`--line-${index % 8}`),
        width: 2,
        dash: index < 8 ? [] : [6, 4],
        spanGaps: true,
        points: { show: true, size: 7, fill: color(`--line-${index % 8}`) }
      }))]
    }, [runs, ...lines], target)
  }

  draw()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
  addEventListener('resize', () => plot.setSize({ width: target.clientWidth, height: 240 }))
}
