# The Rasch model by mirt: Rscript mirt_rasch.R ANSWERS; prints the processor seconds of the fit alone.
suppressMessages(library(mirt))
answers <- read.csv(commandArgs(trailingOnly = TRUE)[1])
spent <- system.time(mirt(answers, 1, itemtype = "Rasch", verbose = FALSE))
cat(spent[["user.self"]] + spent[["sys.self"]], "\n")
